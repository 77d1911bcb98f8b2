// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* The page functions for systems without pages, such as WebAssembly: files are read into memory of the C library. */
#include "core/model.h"
#include "os/file.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

char *kiln_pages_allocate(size_t bytes) {
  const size_t rounded = (size_t)KILN_ARENA_ROUND(bytes);
  char *memory = rounded >= bytes ? aligned_alloc(KILN_ARENA_ALIGNMENT, rounded) : NULL;
  for (size_t i = 0; memory && i < bytes; ++i)
    memory[i] = 0;
  return memory;
}

char *kiln_pages_of_file(int descriptor, size_t bytes, bool is_written) {
  char *memory = kiln_pages_allocate(bytes);
  (void)is_written;
  for (size_t at = 0; memory && at < bytes;) {
    const ssize_t got = read(descriptor, memory + at, bytes - at);
    if (got > 0) {
      at += (size_t)got;
    } else if (got == 0 || errno != EINTR) {
      if (got == 0)
        errno = EIO; /* the file has been truncated */
      free(memory);
      memory = NULL;
    }
  }
  return memory;
}

void kiln_pages_release(void *memory, size_t bytes) {
  (void)bytes;
  free(memory);
}

void kiln_file_give_back(const kiln_file_t *file, const char *begin, const char *end) {
  (void)file, (void)begin, (void)end;
}

long kiln_process(void) { return 0; }
