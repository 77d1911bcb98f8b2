/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The macOS declarations of this header that the runtime uses (README.md). */
#ifndef KILN_DARWIN_STDLIB_H
#define KILN_DARWIN_STDLIB_H

#include <stddef.h>

void *aligned_alloc(size_t alignment, size_t bytes);
void free(void *memory);

#endif /* KILN_DARWIN_STDLIB_H */
