// SPDX-License-Identifier: Apache-2.0
// Files that another program cuts while a model lives that was bound to them: what is bound by a copy does not mind; a
// packed file, which is mapped, may be replaced or removed, but not cut.
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
    Checkpoints files; // which the next one may read
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

// What docs/checkpoints.md warns of.
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
