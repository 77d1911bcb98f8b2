// SPDX-License-Identifier: Apache-2.0
// Files that another program truncates while a model that was bound to them exists: copied weights are not affected; a
// packed file, which is mapped, may be replaced or removed, but not truncated.
#include "checkpoints.h"

#include <gtest/gtest.h>

namespace {

using namespace kiln_test;

const std::vector<int32_t> Ids = {4, 0, 3, 1, 2};

class CutFiles : public testing::Test {
protected:
  CutFiles() { EXPECT_EQ(kiln_create(nullptr, &Model, &Error), KILN_OK); }
  ~CutFiles() override { kiln_destroy(Model); }

  Checkpoints Files;
  kiln_model_t *Model = nullptr;
  kiln_error_t Error = {};
};

TEST_F(CutFiles, WeightsAreACopy) {
  for (const Operation &operation : Files.operations()) {
    const std::string_view name = operation.Name;
    if (!name.starts_with("bind_") || name == "bind_packed")
      continue;
    SCOPED_TRACE(operation.Name);
    Checkpoints files; // new files, which the next operation may read
    for (const Operation &own : files.operations())
      if (own.Name == name) {
        ASSERT_EQ(own.Run(Model, &Error), KILN_OK) << Error.message;
      }
    for (const auto &[file, bytes] : files.files())
      fs::resize_file(files.at(file), 0);
    EXPECT_EQ(runForward(Model, Ids), expectedRows(Ids));
  }
}

TEST_F(CutFiles, PackedFilesMayBeReplacedOrRemoved) {
  const std::string path = Files.at("w.packed");
  ASSERT_EQ(kiln_bind_packed(Model, path.c_str(), &Error), KILN_OK) << Error.message;
  kiln_model_t *other = Checkpoints::makeZero();
  ASSERT_EQ(kiln_save_packed(other, path.c_str(), &Error), KILN_OK) << Error.message;
  kiln_destroy(other);
  EXPECT_EQ(runForward(Model, Ids), expectedRows(Ids));
  fs::remove(path);
  EXPECT_EQ(runForward(Model, Ids), expectedRows(Ids));
}

/// An allocator that changes files before its allocation number `At`, as another program might do concurrently.
struct Meddler {
  int Made = 0, At = 0;
  std::function<void()> Do;

  kiln_allocator_t get() {
    return {this,
            [](void *self, size_t bytes, size_t alignment) {
              auto *meddler = static_cast<Meddler *>(self);
              if (++meddler->Made == meddler->At)
                meddler->Do();
              return std::aligned_alloc(alignment, bytes);
            },
            [](void *, void *memory) { std::free(memory); }};
  }
};

/// Runs a reading operation once for each of its allocations, at which `meddle` truncates or overwrites files; returns
/// the number of runs that ended with an error status.
int runWithMeddler(const char *name, uintptr_t flags, const std::function<void(const Checkpoints &)> &meddle) {
  int failed = 0, at = 0;
  Meddler meddler;
  do {
    SCOPED_TRACE("allocation " + std::to_string(++at));
    Checkpoints files;
    Meddler own;
    const kiln_allocator_t allocator = own.get();
    kiln_options_t options = {};
    options.allocator = &allocator;
    options.flags = flags;
    kiln_model_t *model = nullptr;
    kiln_error_t error = {};
    EXPECT_EQ(kiln_create_on(&options, &model, &error), KILN_OK) << error.message;
    const std::string image = imageOf(testWeights());
    EXPECT_EQ(kiln_bind_weights_from_memory(model, image.data(), image.size(), &error), KILN_OK) << error.message;
    own.Made = 0;
    own.At = at;
    own.Do = [&] { meddle(files); };
    for (const Operation &operation : files.operations())
      if (std::string_view(operation.Name) == name) {
        const kiln_status_t status = operation.Run(model, &error);
        failed += status != KILN_OK;
        EXPECT_EQ(status, error.status);
        EXPECT_TRUE(status == KILN_OK || error.message[0]);
      }
    EXPECT_EQ(runForward(model, Ids).size(), Ids.size() * Width);
    kiln_destroy(model);
    meddler.Made = own.Made;
  } while (meddler.Made >= at && at < 100);
  return failed;
}

/// Returns the reading operations, including that of packed files.
std::vector<std::string> readers() {
  std::vector<std::string> names;
  Checkpoints files;
  for (const Operation &operation : files.operations())
    if (!operation.IsWriting)
      names.push_back(operation.Name);
  return names;
}

// Truncation before the first weight is packed gives an error status: headers are read once, with system calls.
TEST_F(CutFiles, CutWhileTheyAreRead) {
  for (const std::string &name : readers()) {
    SCOPED_TRACE(name);
    for (const uintmax_t left : {0, 4, 60}) {
      SCOPED_TRACE("to " + std::to_string(left) + " bytes");
      const int failed = runWithMeddler(name.c_str(), 0, [left](const Checkpoints &files) {
        for (const auto &[file, bytes] : files.files())
          fs::resize_file(files.at(file), std::min<uintmax_t>(left, bytes.size()));
      });
      if (name != "bind_packed") { // allocates nothing
        EXPECT_GE(failed, 2);
      }
    }
  }
}

// If the file is copied first, later changes of the file have no effect.
TEST_F(CutFiles, CutWhileTheyAreCopied) {
  for (const std::string &name : readers()) {
    SCOPED_TRACE(name);
    const int failed = runWithMeddler(name.c_str(), KILN_COPY_FILES, [](const Checkpoints &files) {
      for (const auto &[file, bytes] : files.files())
        fs::resize_file(files.at(file), 1);
    });
    EXPECT_GE(failed, 1) << "the allocation of the copy itself";
  }
}

// Headers that another program overwrites while they are read: other and longer names, other offsets.
TEST_F(CutFiles, WrittenWhileTheyAreRead) {
  for (const std::string &name : readers())
    for (const char other : {'"', '9', '\xFF'})
      for (const uintptr_t flags : {uintptr_t{0}, uintptr_t{KILN_COPY_FILES}}) {
        SCOPED_TRACE(name + " with byte " + std::to_string(int{other}));
        runWithMeddler(name.c_str(), flags, [other](const Checkpoints &files) {
          for (const auto &[file, bytes] : files.files()) {
            std::fstream stream(files.at(file), std::ios::binary | std::ios::in | std::ios::out);
            const std::string filled(bytes.size(), other);
            stream.write(filled.data(), static_cast<std::streamsize>(filled.size()));
          }
        });
      }
}

// With KILN_COPY_FILES no file is read after binding, nor is it mapped: packed files may be truncated too.
TEST_F(CutFiles, CopiesOfPackedFiles) {
  kiln_options_t options = {};
  options.flags = KILN_COPY_FILES;
  kiln_model_t *copying = nullptr;
  ASSERT_EQ(kiln_create_on(&options, &copying, &Error), KILN_OK) << Error.message;
  const std::string path = Files.at("w.packed");
  ASSERT_EQ(kiln_bind_packed(copying, path.c_str(), &Error), KILN_OK) << Error.message;
  EXPECT_NE(copying->packed_kind, KILN_PACKED_FILE);
  EXPECT_EQ(packedOf(copying), Files.Packed);
  fs::resize_file(path, 0);
  EXPECT_EQ(runForward(copying, Ids), expectedRows(Ids));
  kiln_destroy(copying);
}

// Copied files give the same bits as mapped ones.
TEST_F(CutFiles, CopiesAreAsMaps) {
  kiln_options_t options = {};
  options.flags = KILN_COPY_FILES;
  for (const Operation &operation : Files.operations()) {
    if (operation.IsWriting)
      continue;
    SCOPED_TRACE(operation.Name);
    kiln_model_t *copying = nullptr;
    ASSERT_EQ(kiln_create_on(&options, &copying, &Error), KILN_OK);
    const std::string image = imageOf(testWeights());
    ASSERT_EQ(kiln_bind_weights_from_memory(copying, image.data(), image.size(), &Error), KILN_OK) << Error.message;
    ASSERT_EQ(operation.Run(copying, &Error), KILN_OK) << Error.message;
    EXPECT_EQ(packedOf(copying), Files.Packed);
    kiln_destroy(copying);
  }
}

// docs/checkpoints.md warns of this.
TEST_F(CutFiles, PackedFilesThatAreCutEndTheProcess) {
  const std::string path = Files.at("w.packed");
  ASSERT_EQ(kiln_bind_packed(Model, path.c_str(), &Error), KILN_OK) << Error.message;
  EXPECT_DEATH(
      {
        fs::resize_file(path, KILN_PACKED_HEAD_BYTES);
        runForward(Model, Ids);
      },
      "");
}

} // namespace
