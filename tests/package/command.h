// SPDX-License-Identifier: Apache-2.0
//
// Runs the commands as a user types them, and inspects the files that they write.
#pragma once

#include "../levels.h"
#include "../read_file.h"

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <map>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::testing {

namespace fs = std::filesystem;

struct Result {
  int status;
  std::string text; // of both streams
};

/// Runs a command in the temporary folder.
inline Result run(const std::string &command) {
  std::FILE *pipe = popen(("cd " + ::testing::TempDir() + " && " + command + " 2>&1").c_str(), "r");
  Result result{-1, ""};
  std::array<char, 4096> block;
  while (std::size_t size = std::fread(block.data(), 1, block.size(), pipe))
    result.text.append(block.data(), size);
  int status = pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

/// A folder that the destructor removes.
class Folder {
public:
  Folder() {
    std::string name = ::testing::TempDir() + "kiln-test-XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
  fs::path path;
};

/// Returns the files of a folder and their contents.
inline std::map<std::string, std::string> contents(const fs::path &folder) {
  std::map<std::string, std::string> files;
  for (const fs::directory_entry &entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      files[fs::relative(entry.path(), folder)] = readFile(entry.path());
  return files;
}

} // namespace kiln::testing
