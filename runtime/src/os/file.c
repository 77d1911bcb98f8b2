// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Maps and writes weight files. The mapping of a safetensors file lives only while weights are bound, since they are
 * packed into the model's own memory; that of a packed file is the model's memory. */
#define _DEFAULT_SOURCE /* fsync, readlink, fchmod, fchown, pread */
#include "os/file.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#if !defined(__wasi__)
#include <sys/file.h>
#endif
#include <sys/stat.h>
#include <unistd.h>

/* The maximum number of bytes of a read or write call. */
enum { MOVED_BYTES = 1 << 30 };
/* The longest path and the maximum number of symbolic links in Linux. */
enum { PATH_BYTES = 4096, MOST_LINKS = 40 };

/* Returns KILN_FILE_ERROR with the text of errno. */
static kiln_status_t fail(kiln_error_t *error, const char *action, const char *path) {
  char reason[64];
  return kiln_file_error(error, action, path, strerror_r(errno, reason, sizeof reason) == 0 ? reason : "unknown error");
}

static void close_handle(int descriptor) {
  if (descriptor >= 0)
    close(descriptor);
}

kiln_status_t kiln_file_map(const char *path, bool is_written, kiln_file_t *file, kiln_error_t *error) {
  kiln_status_t status = KILN_OK;
  struct stat facts;
  int descriptor;
  do                                                            /* network file systems may interrupt it */
    descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* so that opening a pipe does not block */
  while (descriptor < 0 && errno == EINTR);
  *file = (kiln_file_t){"", 0, path, descriptor, NULL};
  if (descriptor < 0)
    return fail(error, "open", path);
  if (fstat(descriptor, &facts) != 0) {
    status = fail(error, "read", path);
  } else if (!S_ISREG(facts.st_mode)) {
    status = kiln_file_error(error, "read", path, "not a regular file");
  } else if ((uint64_t)facts.st_size > SIZE_MAX) {
    status = kiln_file_error(error, "map", path, "too large");
  } else if (facts.st_size >
             0) { /* an empty file cannot be mapped: its image stays empty, and is rejected as malformed */
    const char *map = kiln_pages_of_file(descriptor, (size_t)facts.st_size, is_written);
    if (!map) {
      status = fail(error, "map", path);
    } else {
      file->image = map;
      file->bytes = (size_t)facts.st_size;
    }
  }
  if (status)
    kiln_file_close(file);
  return status;
}

static kiln_status_t refuse_cut(const kiln_file_t *file, kiln_error_t *error) {
  return kiln_file_error(error, "read", file->path, "shorter than when it was opened");
}

kiln_status_t kiln_file_read(const kiln_file_t *file, uint64_t offset, void *to, size_t bytes, kiln_error_t *error) {
  if (file->handle < 0) {
    memcpy(to, (const char *)file->image + offset, bytes);
    return KILN_OK;
  }
  for (char *at = to; bytes > 0;) {
    const ssize_t got = pread((int)file->handle, at, bytes < MOVED_BYTES ? bytes : MOVED_BYTES, (off_t)offset);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return fail(error, "read", file->path);
    if (got == 0)
      return refuse_cut(file, error);
    at += got;
    offset += (uint64_t)got;
    bytes -= (size_t)got;
  }
  return KILN_OK;
}

kiln_status_t kiln_file_check(const kiln_file_t *file, kiln_error_t *error) {
  struct stat facts;
  if (file->handle < 0)
    return KILN_OK;
  if (fstat((int)file->handle, &facts) != 0)
    return fail(error, "read", file->path);
  return (uint64_t)facts.st_size < file->bytes ? refuse_cut(file, error) : KILN_OK;
}

void kiln_file_close(kiln_file_t *file) {
  close_handle((int)file->handle);
  file->handle = -1;
}

void kiln_file_unmap(kiln_file_t *file) {
  kiln_file_close(file);
  if (file->copied)
    file->copied->release(file->copied->self, (void *)file->image);
  else if (file->bytes > 0)
    kiln_pages_release((void *)file->image, file->bytes);
}

kiln_status_t kiln_file_write(const kiln_output_t *output, const void *bytes, uint64_t count, kiln_error_t *error) {
  for (const char *from = bytes; count > 0;) {
    const ssize_t written = write((int)output->handle, from, count < MOVED_BYTES ? (size_t)count : MOVED_BYTES);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return fail(error, "write", output->path);
    from += written;
    count -= (uint64_t)written;
  }
  return KILN_OK;
}

#if defined(__wasi__) /* no locks, and no other processes */
static bool lock(int descriptor) {
  (void)descriptor;
  return false;
}
#else
static bool lock(int descriptor) { return flock(descriptor, LOCK_EX | LOCK_NB) == 0; }
#endif

/* Whether the file has no writer: it was left by a killed process with the same id as this one. */
static bool is_left(const char *part) {
  const int descriptor = open(part, O_WRONLY | O_CLOEXEC);
  if (descriptor < 0)
    return false;
  const bool is_free = lock(descriptor);
  close(descriptor);
  return is_free;
}

/* Creates the temporary file; -1 with errno on failure. */
static int create_part(const char *part, unsigned mode) {
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  int descriptor = open(part, flags, mode);
  if (descriptor < 0 && errno == EEXIST) {
    if (is_left(part) && unlink(part) == 0)
      descriptor = open(part, flags, mode);
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

/* Follows the symbolic links at a path, whether or not the final file exists. Returns false with errno if there is
 * no target. */
static bool follow_links(const char *path, char target[PATH_BYTES]) {
  char link[PATH_BYTES];
  size_t length = strlen(path);
  errno = ENAMETOOLONG;
  if (length >= PATH_BYTES)
    return false;
  memcpy(target, path, length + 1);
  for (int links = 0;; ++links) {
    const ssize_t bytes = readlink(target, link, sizeof link);
    if (bytes < 0)
      return errno == EINVAL || errno == ENOENT; /* not a link, or nonexistent */
    errno = ELOOP;
    if (links == MOST_LINKS)
      return false;
    /* A relative link is relative to its own folder. */
    length = bytes > 0 && link[0] == '/' ? 0 : (size_t)(kiln_base_name(target) - target);
    errno = ENAMETOOLONG;
    if (length + (size_t)bytes >= PATH_BYTES)
      return false;
    memcpy(target + length, link, (size_t)bytes);
    target[length + (size_t)bytes] = '\0';
  }
}

/* The attributes of the file that is replaced. */
typedef struct former_t {
  bool is_there;
  struct stat facts;
} former_t;

/* Looks at the path as given: a link such as /dev/stdout may name a pipe, which only the system can follow. */
static kiln_status_t look_at(const char *path, former_t *former, kiln_error_t *error) {
  former->is_there = stat(path, &former->facts) == 0;
  if (former->is_there && !S_ISREG(former->facts.st_mode))
    return kiln_file_error(error, "write", path, "not a regular file");
  return former->is_there || errno == ENOENT ? KILN_OK : fail(error, "create", path);
}

#if defined(__wasi__) /* no file modes */
static bool keep_mode(int descriptor, const former_t *former) {
  (void)descriptor, (void)former;
  return true;
}
#else
/* Gives a new file the mode, owner and group of the previous one. If the group cannot be kept, the group gets no
 * rights. */
static bool keep_mode(int descriptor, const former_t *former) {
  const struct stat *facts = &former->facts;
  unsigned mode = facts->st_mode & 07777;
  if (!former->is_there)
    return true;
  /* Only a privileged process can change the owner. */
  if (fchown(descriptor, facts->st_uid, facts->st_gid) != 0 && fchown(descriptor, (uid_t)-1, facts->st_gid) != 0)
    mode &= ~070u;
  return fchmod(descriptor, mode) == 0;
}
#endif

/* Writes `part`, and renames it to `target`. */
static kiln_status_t write_part(const char *part, const char *target, const former_t *former, kiln_write_t write_all,
                                const void *context, kiln_error_t *error) {
  /* While it is written, the file must not be readable by anyone who could not read the previous one. */
  const int descriptor = create_part(part, former->is_there ? 0600 : 0666);
  const kiln_output_t output = {descriptor, part};
  if (descriptor < 0)
    return fail(error, "create", part);
  kiln_status_t status = write_all(context, &output, error);
  if (!status && !keep_mode(descriptor, former))
    status = fail(error, "write", part);
  if (!status)
    status = kiln_file_keep(&output, error);
  if (close(descriptor) != 0 && errno != EINTR && !status) /* an interrupted close has still closed the file */
    status = fail(error, "write", part);
  if (!status && rename(part, target) != 0)
    status = fail(error, "create", target);
  if (status)
    unlink(part);
  return status ? status : kiln_error_clear(error);
}

kiln_status_t kiln_file_replace(const char *path, kiln_write_t write_all, const void *context, kiln_error_t *error) {
  char target[PATH_BYTES], part[PATH_BYTES];
  former_t former;
  const kiln_status_t status = look_at(path, &former, error);
  if (status)
    return status;
  if (!follow_links(path, target))
    return fail(error, "create", path);
  if (kiln_text_print(part, sizeof part, "%s.%ld.part", target, kiln_process()) >= sizeof part) {
    errno = ENAMETOOLONG;
    return fail(error, "create", path);
  }
  return write_part(part, target, &former, write_all, context, error);
}
