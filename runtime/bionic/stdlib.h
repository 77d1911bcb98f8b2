/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The Android declarations of this header that the runtime uses (README.md). */
#ifndef KILN_BIONIC_STDLIB_H
#define KILN_BIONIC_STDLIB_H

#include <stddef.h>

int posix_memalign(void **memory, size_t alignment, size_t bytes);
void free(void *memory);

#endif /* KILN_BIONIC_STDLIB_H */
