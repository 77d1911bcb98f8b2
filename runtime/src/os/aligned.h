/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Aligned memory from the C library; Windows releases it with a separate function. */
#ifndef KILN_ALIGNED_H
#define KILN_ALIGNED_H

#include <stddef.h>
#if defined(_WIN32)
/* Not by <malloc.h>, which declares them as imported: a program may link the C library statically. */
void *kiln_windows_allocate(size_t bytes, size_t alignment) __asm__("_aligned_malloc");
void kiln_windows_free(void *memory) __asm__("_aligned_free");
static inline void *kiln_aligned_allocate(size_t alignment, size_t bytes) {
  return kiln_windows_allocate(bytes, alignment);
}
static inline void kiln_aligned_free(void *memory) { kiln_windows_free(memory); }
#else
#include <stdlib.h>
#if defined(__ANDROID__) /* which has aligned_alloc since Android 9 */
static inline void *kiln_aligned_allocate(size_t alignment, size_t bytes) {
  void *memory;
  return posix_memalign(&memory, alignment, bytes) == 0 ? memory : NULL;
}
#else
static inline void *kiln_aligned_allocate(size_t alignment, size_t bytes) { return aligned_alloc(alignment, bytes); }
#endif
static inline void kiln_aligned_free(void *memory) { free(memory); }
#endif

#endif /* KILN_ALIGNED_H */
