// SPDX-License-Identifier: Apache-2.0
#include "compiler/object/ReplaceFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln {

/// Opens the file with an exclusive lock; returns -1 if it cannot be created. A system without locks must have one
/// writer at a time.
static int openLocked(const char *path) {
  for (;;) {
    const int file = ::open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0)
      return -1;
    while (::flock(file, LOCK_EX) != 0 && errno == EINTR)
      ;
    // The previous owner of the lock may have renamed the file since it was opened.
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

/// Returns the target of a chain of symbolic links that starts at the path, whether or not there is a file. Returns an
/// empty string and sets errno if there are too many links.
static std::string followLinks(const std::string &path) {
  std::filesystem::path target = path;
  std::error_code error;
  for (int links = 0; links < 40; ++links) {
    const std::filesystem::path next = std::filesystem::read_symlink(target, error);
    if (error)
      return target.string();
    target = next.is_absolute() ? next : target.parent_path() / next;
  }
  errno = ELOOP;
  return "";
}

/// Gives a new file the mode, owner and group of the one that it replaces. If the group cannot be kept, the group of
/// the new file gets no permissions.
static bool keepMode(int file, const struct stat &former) {
  mode_t mode = former.st_mode & 07777;
  if (::fchown(file, former.st_uid, former.st_gid) != 0 && ::fchown(file, uid_t(-1), former.st_gid) != 0)
    mode &= ~mode_t(070);
  return ::fchmod(file, mode) == 0;
}

/// Writes the entry in the file's folder to the disk, too, as far as the system supports that.
static void keepEntry(const std::string &path) {
  const std::string folder = llvm::sys::path::parent_path(path).str();
  const int directory = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0)
    return;
  ::fsync(directory);
  ::close(directory);
}

llvm::Error replaceFile(const std::string &path, llvm::StringRef bytes) {
  const std::string target = followLinks(path), partial = target + ".partial";
  struct stat former{};
  if (target.empty() && !path.empty()) {
    const std::error_code code(errno, std::generic_category());
    return llvm::createStringError(code, "cannot write \"%s\": %s", path.c_str(), code.message().c_str());
  }
  const bool isThere = ::stat(target.c_str(), &former) == 0;
  if (isThere && !S_ISREG(former.st_mode))
    return llvm::createStringError("cannot write \"%s\": not a regular file", path.c_str());
  const int file = openLocked(partial.c_str());
  const bool isWritten = file >= 0 && ::ftruncate(file, 0) == 0 && writeAll(file, bytes) &&
                         (!isThere || keepMode(file, former)) && ::fsync(file) == 0 &&
                         ::rename(partial.c_str(), target.c_str()) == 0;
  const std::error_code code(errno, std::generic_category());
  if (file >= 0 && !isWritten)
    ::unlink(partial.c_str());
  if (file >= 0)
    ::close(file); // this releases the lock, too
  if (!isWritten)
    return llvm::createStringError(code, "cannot write \"%s\": %s", path.c_str(), code.message().c_str());
  keepEntry(target);
  return llvm::Error::success();
}

llvm::Error writeFile(const std::string &path, llvm::StringRef bytes) {
  // Permissions follow from the umask, as with mkdir. If this fails, replaceFile() fails with a message.
  llvm::sys::fs::create_directories(llvm::sys::path::parent_path(path), /*IgnoreExisting=*/true,
                                    llvm::sys::fs::all_all);
  return replaceFile(path, bytes);
}

} // namespace kiln
