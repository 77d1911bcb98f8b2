// SPDX-License-Identifier: Apache-2.0
#include "compiler/object/ReplaceFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln {

/// Opens the file for this process alone; -1 if it cannot be made. A system without locks has one writer at a time.
static int openLocked(const char *path) {
  for (;;) {
    const int file = ::open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0)
      return -1;
    while (::flock(file, LOCK_EX) != 0 && errno == EINTR)
      ;
    // Whoever had the lock may have given the file its last name since it was opened.
    struct stat opened, named;
    if (::fstat(file, &opened) == 0 && ::stat(path, &named) == 0 && opened.st_dev == named.st_dev &&
        opened.st_ino == named.st_ino)
      return file;
    ::close(file);
  }
}

static bool writeAll(int file, llvm::StringRef bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR)
      return false;
    bytes = bytes.drop_front(std::max<ssize_t>(written, 0));
  }
  return true;
}

llvm::Error replaceFile(const std::string &path, llvm::StringRef bytes) {
  const std::string partial = path + ".partial";
  const int file = openLocked(partial.c_str());
  const bool isWritten = file >= 0 && ::ftruncate(file, 0) == 0 && writeAll(file, bytes) && ::fsync(file) == 0 &&
                         ::rename(partial.c_str(), path.c_str()) == 0;
  const std::error_code code(errno, std::generic_category());
  if (file >= 0 && !isWritten)
    ::unlink(partial.c_str());
  if (file >= 0)
    ::close(file); // and so the lock is given back
  if (isWritten)
    return llvm::Error::success();
  return llvm::createStringError(code, "cannot write \"%s\": %s", path.c_str(), code.message().c_str());
}

llvm::Error writeFile(const std::string &path, llvm::StringRef bytes) {
  llvm::sys::fs::create_directories(llvm::sys::path::parent_path(path)); // what fails there fails below, in words
  return replaceFile(path, bytes);
}

} // namespace kiln
