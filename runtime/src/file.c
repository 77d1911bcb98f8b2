// SPDX-License-Identifier: Apache-2.0
/* Maps a weight file for reading. The map lives only while weights are bound: they are packed into the model's own
 * memory. */
#define _DEFAULT_SOURCE /* madvise */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SHOWN = 2 * KILN_NAME_SHOWN };

static kiln_status_t fail(kiln_error_t *error, const char *action, const char *path, const char *reason) {
  /* Of a long path the end, which tells more. */
  const size_t length = strlen(path), hidden = length > PATH_SHOWN ? length - PATH_SHOWN : 0;
  return kiln_error_set(error, KILN_FILE_ERROR, "cannot %s weight file \"%s%s\": %s", action, hidden ? "..." : "",
                        path + hidden, reason);
}

static kiln_status_t fail_errno(kiln_error_t *error, const char *action, const char *path) {
  char reason[64];
  return fail(error, action, path, strerror_r(errno, reason, sizeof reason) == 0 ? reason : "unknown error");
}

kiln_status_t kiln_file_map(const char *path, kiln_file_t *file, kiln_error_t *error) {
  kiln_status_t status = KILN_OK;
  struct stat facts;
  file->image = "";
  file->bytes = 0;
  int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* so that a pipe is refused and not waited for */
  if (descriptor < 0)
    return fail_errno(error, "open", path);
  if (fstat(descriptor, &facts) != 0) {
    status = fail_errno(error, "read", path);
  } else if (!S_ISREG(facts.st_mode)) {
    status = fail(error, "read", path, "not a regular file");
  } else if ((uint64_t)facts.st_size > SIZE_MAX) {
    status = fail(error, "map", path, "too large");
  } else if (facts.st_size > 0) { /* an empty file cannot be mapped: its image stays empty, and malformed */
    void *map = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (map == MAP_FAILED) {
      status = fail_errno(error, "map", path);
    } else {
      file->image = map;
      file->bytes = (size_t)facts.st_size;
    }
  }
  close(descriptor);
  return status;
}

void kiln_file_unmap(kiln_file_t *file) {
  if (file->bytes > 0)
    munmap((void *)file->image, file->bytes);
}

void kiln_file_give_back(const char *begin, const char *end) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), head = (uintptr_t)begin % page;
  if (end > begin)
    madvise((void *)(begin - head), (size_t)(end - begin) + head, MADV_DONTNEED); /* all pages that it touches */
}
