// SPDX-License-Identifier: Apache-2.0
/* Maps weight files, and writes them. The map of a safetensors file lives only while weights are bound, since they are
 * packed into the model's own memory; that of a packed file is the model's memory. */
#define _DEFAULT_SOURCE /* fsync */
#include "file.h"
#include "status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#if !defined(__wasi__)
#include <sys/file.h>
#endif
#include <sys/stat.h>
#include <unistd.h>

/* What is written at a time, at most. */
enum { WRITTEN_BYTES = 1 << 30 };

/* KILN_FILE_ERROR, with what errno says. */
static kiln_status_t fail(kiln_error_t *error, const char *action, const char *path) {
  char reason[64];
  return kiln_file_error(error, action, path, strerror_r(errno, reason, sizeof reason) == 0 ? reason : "unknown error");
}

kiln_status_t kiln_file_map(const char *path, bool is_written, kiln_file_t *file, kiln_error_t *error) {
  kiln_status_t status = KILN_OK;
  struct stat facts;
  file->image = "";
  file->bytes = 0;
  int descriptor;
  do /* a system whose files lie elsewhere may interrupt it */
    descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* so that a pipe is refused and not waited for */
  while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0)
    return fail(error, "open", path);
  if (fstat(descriptor, &facts) != 0) {
    status = fail(error, "read", path);
  } else if (!S_ISREG(facts.st_mode)) {
    status = kiln_file_error(error, "read", path, "not a regular file");
  } else if ((uint64_t)facts.st_size > SIZE_MAX) {
    status = kiln_file_error(error, "map", path, "too large");
  } else if (facts.st_size > 0) { /* an empty file cannot be mapped: its image stays empty, and malformed */
    const char *map = kiln_pages_of_file(descriptor, (size_t)facts.st_size, is_written);
    if (!map) {
      status = fail(error, "map", path);
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
    kiln_pages_release((void *)file->image, file->bytes);
}

kiln_status_t kiln_file_write(const kiln_output_t *output, const void *bytes, uint64_t count, kiln_error_t *error) {
  for (const char *from = bytes; count > 0;) {
    const ssize_t written = write((int)output->handle, from, count < WRITTEN_BYTES ? (size_t)count : WRITTEN_BYTES);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return fail(error, "write", output->path);
    from += written;
    count -= (uint64_t)written;
  }
  return KILN_OK;
}

#if defined(__wasi__) /* no locks, and no process but this one */
static bool lock(int descriptor) {
  (void)descriptor;
  return false;
}
#else
static bool lock(int descriptor) { return flock(descriptor, LOCK_EX | LOCK_NB) == 0; }
#endif

/* Whether nobody writes the file any more: a process that was killed left it, whose number this one has now. */
static bool is_left(const char *part) {
  const int descriptor = open(part, O_WRONLY | O_CLOEXEC);
  if (descriptor < 0)
    return false;
  const bool is_free = lock(descriptor);
  close(descriptor);
  return is_free;
}

/* Makes the file that is written beside another one; -1 with errno if it cannot be. */
static int create_part(const char *part) {
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  int descriptor = open(part, flags, 0666);
  if (descriptor < 0 && errno == EEXIST) {
    if (is_left(part) && unlink(part) == 0)
      descriptor = open(part, flags, 0666);
    else
      errno = EEXIST;
  }
  if (descriptor >= 0)
    lock(descriptor);
  return descriptor;
}

kiln_status_t kiln_file_keep(const kiln_output_t *output, kiln_error_t *error) {
  int result;
  do
    result = fsync((int)output->handle);
  while (result != 0 && errno == EINTR);
  return result ? fail(error, "write", output->path) : KILN_OK;
}

kiln_status_t kiln_file_replace(const char *path, kiln_write_t write_all, const void *context, kiln_error_t *error) {
  char part[4096]; /* the longest path of Linux */
  if (kiln_text_print(part, sizeof part, "%s.%ld.part", path, kiln_process()) >= sizeof part) {
    errno = ENAMETOOLONG;
    return fail(error, "create", path);
  }
  const int descriptor = create_part(part);
  const kiln_output_t output = {descriptor, part};
  if (descriptor < 0)
    return fail(error, "create", part);
  kiln_status_t status = write_all(context, &output, error);
  if (!status)
    status = kiln_file_keep(&output, error);
  if (close(descriptor) != 0 && errno != EINTR && !status) /* interrupted it closes all the same */
    status = fail(error, "write", part);
  if (!status && rename(part, path) != 0)
    status = fail(error, "create", path);
  if (status)
    unlink(part);
  return status ? status : kiln_error_clear(error);
}
