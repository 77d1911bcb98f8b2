// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* System services with pages: allocation, and mapping of files. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, MAP_POPULATE, madvise */
#include "os/file.h"

#include <sys/mman.h>
#include <unistd.h>

/* On an access the system may map the whole large page of its cache that contains the page: at most 2 MB. */
enum { NEIGHBOUR_BYTES = 1 << 21 };

/* Pre-faults all pages at once, which is cheaper than a fault for each (M-0927). No request for huge pages: with
 * them binding takes several times as long in a virtual machine that returns free memory to its host (M-0928). */
char *kiln_pages_allocate(size_t bytes) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#ifdef MAP_POPULATE
  flags |= MAP_POPULATE;
#endif
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

/* MAP_PRIVATE works on every file system: pages that are only read are still those of the system's page cache, and
 * shared by all processes that map the file. */
char *kiln_pages_of_file(int descriptor, size_t bytes, bool is_written) {
  void *memory = mmap(NULL, bytes, PROT_READ | (is_written ? PROT_WRITE : 0), MAP_PRIVATE, descriptor, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

void kiln_pages_release(void *memory, size_t bytes) { munmap(memory, bytes); }

void kiln_file_give_back(const kiln_file_t *file, const char *begin, const char *end) {
  const char *const first = file->image, *const last = first + file->bytes;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  begin -= begin - first < NEIGHBOUR_BYTES ? begin - first : NEIGHBOUR_BYTES;
  begin -= (size_t)(begin - first) % page;
  end += last - end < NEIGHBOUR_BYTES ? last - end : NEIGHBOUR_BYTES;
  madvise((void *)begin, (size_t)(end - begin), MADV_DONTNEED); /* affects all pages in the range */
}

long kiln_process(void) { return (long)getpid(); }
