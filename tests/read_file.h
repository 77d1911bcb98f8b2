// SPDX-License-Identifier: Apache-2.0
//
// The contents of a file that a test has written.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace kiln::testing {

/// Returns the bytes of a file; an empty string if it cannot be read.
inline std::string readFile(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

} // namespace kiln::testing
