// SPDX-License-Identifier: Apache-2.0
// Each system call of all that reads or writes files fails once: the model and the files are as they were, with a
// status in words, or what was asked for is done; nothing stays open or mapped. Calls that are interrupted are made
// again, and what is written in part is written on.
#include "checkpoints.h"

#include <cerrno>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

#ifdef KILN_WITHOUT_PAGES
constexpr bool HasPages = false;
#else
constexpr bool HasPages = true;
#endif

/// What the wrapped calls do while an operation runs.
struct System {
  bool IsWatched = false;
  int Made = 0, FailAt = 0, Error = EIO; // the number of the call that fails, from 1 on; 0: none
  bool Interrupts = false;               // those that may be made again, every second time
  size_t MostMoved = SIZE_MAX;           // of what is to be read or written
  int Mapped = 0;

  /// Whether this call is to fail; then errno is set.
  bool fails(bool mayBeRepeated = false) {
    if (!IsWatched)
      return false;
    const bool isInterrupted = Interrupts && mayBeRepeated && Made % 2 == 0;
    if (++Made != FailAt && !isInterrupted)
      return false;
    errno = isInterrupted ? EINTR : Error;
    return true;
  }
} Calls;

} // namespace

extern "C" {
int __real_open(const char *path, int flags, ...);
int __real_close(int descriptor);
int __real_fstat(int descriptor, struct stat *facts);
int __real_fsync(int descriptor);
void *__real_mmap(void *address, size_t bytes, int protection, int flags, int descriptor, off_t offset);
int __real_munmap(void *address, size_t bytes);
int __real_rename(const char *from, const char *to);
int __real_unlink(const char *path);
ssize_t __real_read(int descriptor, void *bytes, size_t count);
ssize_t __real_write(int descriptor, const void *bytes, size_t count);

int __wrap_open(const char *path, int flags, mode_t mode) {
  return Calls.fails(!(flags & O_CREAT)) ? -1 : __real_open(path, flags, mode);
}
int __wrap_close(int descriptor) { // is done, whatever it returns
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
ssize_t __wrap_read(int descriptor, void *bytes, size_t count) {
  return Calls.fails(true) ? -1 : __real_read(descriptor, bytes, std::min(count, Calls.MostMoved));
}
ssize_t __wrap_write(int descriptor, const void *bytes, size_t count) {
  return Calls.fails(true) ? -1 : __real_write(descriptor, bytes, std::min(count, Calls.MostMoved));
}
}

namespace {

using namespace kiln_test;

size_t openFiles() {
  return static_cast<size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

class FailingCalls : public testing::Test {
protected:
  ~FailingCalls() override { Calls = {}; }

  /// Runs it on a model of zeros and looks at what there is afterwards.
  kiln_status_t run(const Operation &operation, System calls) {
    Files.write("saved", "old");
    const auto before = Files.files();
    const size_t opened = openFiles();
    Calls = {};
    Calls.IsWatched = true;
    kiln_model_t *model = Checkpoints::makeZero();
    const std::string zeros = packedOf(model);
    kiln_error_t error = {};
    calls.IsWatched = true;
    calls.Mapped = Calls.Mapped;
    Calls = calls;
    const kiln_status_t status = operation.Run(model, &error);
    Calls.FailAt = 0;
    Calls.Interrupts = false;
    EXPECT_EQ(status, error.status);
    EXPECT_EQ(openFiles(), opened);
    if (HasPages) {
      EXPECT_EQ(Calls.Mapped, model->packed_kind != KILN_PACKED_ALLOCATED);
    }
    if (status) {
      EXPECT_TRUE(status == KILN_FILE_ERROR || status == KILN_OUT_OF_MEMORY) << status;
      EXPECT_NE(std::string(error.message).find("\": Input/output error"), std::string::npos) << error.message;
      EXPECT_EQ(Files.files(), before);
      EXPECT_EQ(packedOf(model), zeros);
    } else if (operation.IsWriting) {
      EXPECT_NE(Files.files()["saved"], "old");
      EXPECT_EQ(Files.files().size(), before.size());
    } else {
      EXPECT_NE(packedOf(model), zeros);
    }
    Given = operation.IsWriting ? Files.files()["saved"] : packedOf(model);
    kiln_destroy(model);
    EXPECT_EQ(Calls.Mapped, 0);
    return status;
  }

  Checkpoints Files;
  std::string Given; // what was written, or the packed weights of what was read
};

TEST_F(FailingCalls, EachOnce) {
  for (const Operation &operation : Files.operations()) {
    SCOPED_TRACE(operation.Name);
    int failed = 0;
    System calls;
    do {
      ++calls.FailAt;
      SCOPED_TRACE("call " + std::to_string(calls.FailAt));
      failed += run(operation, calls) != KILN_OK;
    } while (Calls.Made >= calls.FailAt && calls.FailAt < 1000);
    EXPECT_GE(failed, 3) << "opening, and what follows";
  }
}

TEST_F(FailingCalls, InterruptedOnesAreRepeated) {
  System calls;
  calls.Interrupts = true;
  for (const Operation &operation : Files.operations()) {
    SCOPED_TRACE(operation.Name);
    EXPECT_EQ(run(operation, calls), KILN_OK);
  }
}

TEST_F(FailingCalls, PartsAreGoneOnFrom) {
  System parts;
  parts.MostMoved = 7;
  for (const Operation &operation : Files.operations()) {
    SCOPED_TRACE(operation.Name);
    ASSERT_EQ(run(operation, {}), KILN_OK);
    const std::string whole = Given;
    ASSERT_EQ(run(operation, parts), KILN_OK);
    EXPECT_EQ(Given, whole);
  }
}

} // namespace
