/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Aligned memory from the C library; Windows releases it with a separate function. */
#ifndef KILN_ALIGNED_H
#define KILN_ALIGNED_H

#include <stddef.h>
#if defined(_WIN32)
#include <malloc.h>
static inline void *kiln_aligned_allocate(size_t alignment, size_t bytes) { return _aligned_malloc(bytes, alignment); }
static inline void kiln_aligned_free(void *memory) { _aligned_free(memory); }
#else
#include <stdlib.h>
static inline void *kiln_aligned_allocate(size_t alignment, size_t bytes) { return aligned_alloc(alignment, bytes); }
static inline void kiln_aligned_free(void *memory) { free(memory); }
#endif

#endif /* KILN_ALIGNED_H */
