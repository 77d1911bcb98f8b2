/* SPDX-License-Identifier: Apache-2.0 */
/* A library that is loaded before libc and counts what a process does to files of one folder: opening them to write,
 * writing, renaming. KILN_FAULT_FOLDER is the folder, KILN_FAULT the fault: "full:7" fills the disk from the seventh of
 * these calls on; "kill:7" kills the process at that call, with half of the data written. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { MOST_FILES = 1024 };
static bool is_in_folder[MOST_FILES]; /* by descriptor */
static int done;

static bool is_watched(const char *path) {
  const char *const folder = getenv("KILN_FAULT_FOLDER");
  return folder && strncmp(path, folder, strlen(folder)) == 0;
}

/* Whether the fault of this kind happens at the current call. */
static bool is_at_fault(const char *kind) {
  const char *const fault = getenv("KILN_FAULT");
  const size_t length = strlen(kind);
  if (!fault || strncmp(fault, kind, length) != 0)
    return false;
  return done >= atoi(fault + length);
}

/* Counts a call; returns false if the disk is full. */
static bool begin(void) {
  ++done;
  if (is_at_fault("kill:"))
    raise(SIGKILL);
  errno = ENOSPC;
  return !is_at_fault("full:");
}

static int open_file(const char *path, int flags, mode_t mode) {
  int (*const next)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
  const bool is_written = (flags & O_ACCMODE) != O_RDONLY && is_watched(path);
  if (is_written && !begin())
    return -1;
  const int descriptor = next(path, flags, mode);
  if (descriptor >= 0 && descriptor < MOST_FILES)
    is_in_folder[descriptor] = is_written;
  return descriptor;
}

static mode_t mode_of(int flags, va_list rest) { return flags & O_CREAT ? va_arg(rest, mode_t) : 0; }

int open(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const int descriptor = open_file(path, flags, mode_of(flags, rest));
  va_end(rest);
  return descriptor;
}

int open64(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const int descriptor = open_file(path, flags, mode_of(flags, rest));
  va_end(rest);
  return descriptor;
}

int close(int descriptor) {
  int (*const next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "close");
  if (descriptor >= 0 && descriptor < MOST_FILES)
    is_in_folder[descriptor] = false;
  return next(descriptor);
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
  ssize_t (*const next)(int, const void *, size_t) = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
  if (descriptor < 0 || descriptor >= MOST_FILES || !is_in_folder[descriptor])
    return next(descriptor, bytes, count);
  ++done;
  if (is_at_fault("kill:")) {
    (void)!next(descriptor, bytes, count / 2);
    raise(SIGKILL);
  }
  errno = ENOSPC;
  return is_at_fault("full:") ? -1 : next(descriptor, bytes, count);
}

int rename(const char *from, const char *to) {
  int (*const next)(const char *, const char *) = (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
  return is_watched(to) && !begin() ? -1 : next(from, to);
}
