/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The declarations of this header that the runtime uses (README.md). */
#ifndef KILN_DARWIN_SYS_SYSCTL_H
#define KILN_DARWIN_SYS_SYSCTL_H

#include <stddef.h>

int sysctlbyname(const char *name, void *value, size_t *bytes, void *given, size_t given_bytes);

#endif /* KILN_DARWIN_SYS_SYSCTL_H */
