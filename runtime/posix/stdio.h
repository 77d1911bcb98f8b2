/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The declarations of this header that the runtime uses (README.md). */
#ifndef KILN_POSIX_STDIO_H
#define KILN_POSIX_STDIO_H

#include <stdarg.h>
#include <stddef.h>

int rename(const char *from, const char *to);
int vsnprintf(char *to, size_t room, const char *format, va_list values) __attribute__((format(printf, 3, 0)));

#endif /* KILN_POSIX_STDIO_H */
