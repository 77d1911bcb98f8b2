/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The declarations of this header that the runtime uses (README.md). */
#ifndef KILN_POSIX_STRING_H
#define KILN_POSIX_STRING_H

#include <stddef.h>

void *memchr(const void *bytes, int wanted, size_t count);
int memcmp(const void *left, const void *right, size_t count);
void *memcpy(void *restrict to, const void *restrict from, size_t count);
void *memmove(void *to, const void *from, size_t count);
void *memset(void *to, int value, size_t count);
char *strchr(const char *text, int wanted);
int strcmp(const char *left, const char *right);
int strerror_r(int number, char *text, size_t room);
size_t strlen(const char *text);
int strncmp(const char *left, const char *right, size_t count);
char *strstr(const char *text, const char *wanted);

#endif /* KILN_POSIX_STRING_H */
