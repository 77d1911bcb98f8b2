/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The Android declarations of this header that the runtime uses (README.md). */
#ifndef KILN_BIONIC_SYS_MMAN_H
#define KILN_BIONIC_SYS_MMAN_H

#include <stddef.h>

#define PROT_READ 1
#define PROT_WRITE 2
#define MAP_PRIVATE 0x2
#define MAP_ANONYMOUS 0x20
#define MAP_POPULATE 0x8000
#define MAP_FAILED ((void *)-1)
#define MADV_DONTNEED 4
void *mmap(void *address, size_t bytes, int protection, int flags, int descriptor, long offset);
int munmap(void *address, size_t bytes);
int madvise(void *address, size_t bytes, int advice);

#endif /* KILN_BIONIC_SYS_MMAN_H */
