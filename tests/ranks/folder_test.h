// SPDX-License-Identifier: Apache-2.0
//
// A fixture for tests that write files: each test has its own folder.
#pragma once

#include "../read_file.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

namespace kiln::test {

class FolderTest : public ::testing::Test {
protected:
  FolderTest() {
    std::string name = (std::filesystem::temp_directory_path() / "kiln_ranks_XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
  }
  ~FolderTest() override { std::filesystem::remove_all(folder); }
  std::string at(const char *name) const { return folder / name; }
  std::string bytes(const char *name) const { return kiln::testing::readFile(at(name)); }

  std::filesystem::path folder;
};

} // namespace kiln::test
