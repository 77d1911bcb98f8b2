// SPDX-License-Identifier: Apache-2.0
//
// File system calls that a test can make fail in a thread; the program is linked with --wrap for each of them.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/// The behaviour of the wrapped calls while an operation runs.
struct System {
  bool IsWatched = false;
  int Made = 0, FailAt = 0, Error = EIO; // the number of the failing call, from 1 on; 0 for none
  bool Interrupts = false;               // interrupts every second call of those that may be repeated
  size_t MostMoved = SIZE_MAX;           // limits the bytes per read or write
  int Mapped = 0;

  /// Whether this call must fail; sets errno in that case.
  bool fails(bool mayBeRepeated = false) {
    if (!IsWatched)
      return false;
    const bool isInterrupted = Interrupts && mayBeRepeated && Made % 2 == 0;
    if (++Made != FailAt && !isInterrupted)
      return false;
    errno = isInterrupted ? EINTR : Error;
    return true;
  }
};
inline thread_local System Calls;

extern "C" {
int __real_open(const char *path, int flags, ...);
int __real_close(int descriptor);
int __real_fstat(int descriptor, struct stat *facts);
int __real_fsync(int descriptor);
void *__real_mmap(void *address, size_t bytes, int protection, int flags, int descriptor, off_t offset);
int __real_munmap(void *address, size_t bytes);
int __real_rename(const char *from, const char *to);
int __real_unlink(const char *path);
int __real_fchmod(int descriptor, mode_t mode);
int __real_fchown(int descriptor, uid_t owner, gid_t group);
int __real_stat(const char *path, struct stat *facts);
ssize_t __real_readlink(const char *path, char *to, size_t bytes);
ssize_t __real_pread(int descriptor, void *bytes, size_t count, off_t offset);
ssize_t __real_read(int descriptor, void *bytes, size_t count);
ssize_t __real_write(int descriptor, const void *bytes, size_t count);

int __wrap_open(const char *path, int flags, mode_t mode) {
  return Calls.fails(!(flags & O_CREAT)) ? -1 : __real_open(path, flags, mode);
}
int __wrap_close(int descriptor) { // closes the descriptor, whatever it returns
  const int result = __real_close(descriptor);
  return Calls.fails(true) ? -1 : result;
}
int __wrap_fstat(int descriptor, struct stat *facts) { return Calls.fails() ? -1 : __real_fstat(descriptor, facts); }
int __wrap_fsync(int descriptor) { return Calls.fails(true) ? -1 : __real_fsync(descriptor); }
void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int descriptor, off_t offset) {
  if (Calls.fails())
    return MAP_FAILED;
  Calls.Mapped += Calls.IsWatched;
  return __real_mmap(address, bytes, protection, flags, descriptor, offset);
}
int __wrap_munmap(void *address, size_t bytes) {
  Calls.Mapped -= Calls.IsWatched;
  const int result = __real_munmap(address, bytes);
  return Calls.fails() ? -1 : result;
}
int __wrap_rename(const char *from, const char *to) { return Calls.fails() ? -1 : __real_rename(from, to); }
int __wrap_unlink(const char *path) { return Calls.fails() ? -1 : __real_unlink(path); }
int __wrap_fchmod(int descriptor, mode_t mode) { return Calls.fails() ? -1 : __real_fchmod(descriptor, mode); }
int __wrap_fchown(int descriptor, uid_t owner, gid_t group) {
  return Calls.fails() ? -1 : __real_fchown(descriptor, owner, group);
}
int __wrap_stat(const char *path, struct stat *facts) { return Calls.fails() ? -1 : __real_stat(path, facts); }
ssize_t __wrap_readlink(const char *path, char *to, size_t bytes) {
  return Calls.fails() ? -1 : __real_readlink(path, to, bytes);
}
ssize_t __wrap_pread(int descriptor, void *bytes, size_t count, off_t offset) {
  return Calls.fails(true) ? -1 : __real_pread(descriptor, bytes, std::min(count, Calls.MostMoved), offset);
}
ssize_t __wrap_read(int descriptor, void *bytes, size_t count) {
  return Calls.fails(true) ? -1 : __real_read(descriptor, bytes, std::min(count, Calls.MostMoved));
}
ssize_t __wrap_write(int descriptor, const void *bytes, size_t count) {
  return Calls.fails(true) ? -1 : __real_write(descriptor, bytes, std::min(count, Calls.MostMoved));
}
}
