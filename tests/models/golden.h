// SPDX-License-Identifier: Apache-2.0
//
// Reads the golden outputs of oracle/ and compares with them. oracle/README.md specifies the files.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace kiln::testing {

/// Throws std::runtime_error, or ends the program on test systems without exceptions.
[[noreturn]] void stop(const std::string &why);

/// Returns the file's bytes, or an empty string if it cannot be read.
std::string readWholeFile(const std::string &path);

/// A file of golden tensors.
class Golden {
public:
  /// `file` is relative to tests/models/oracle.
  explicit Golden(const std::string &file);

  std::vector<float> floats(const std::string &tensor) const { return read<float>(tensor, "F32"); }
  std::vector<std::int32_t> integers(const std::string &tensor) const { return read<std::int32_t>(tensor, "I32"); }

  /// Returns the error of the output `name`, such as "T7.logits", relative to its largest element: the larger one of
  /// the samples' error and of the sketch's, to which every element contributes. Infinite if any value is NaN. Recorded
  /// as a property of the running test: `--gtest_output=xml` lists it.
  double error(const std::string &name, std::span<const float> ours) const;

private:
  double sampleError(const std::string &name, std::span<const float> ours) const;
  double sketchError(const std::string &name, std::span<const float> ours) const;

  struct Tensor {
    std::string type;
    std::size_t begin, end;
  };
  template <class T> std::vector<T> read(const std::string &tensor, const char *type) const;

  std::string bytes;
  std::size_t data = 0; // offset of the tensors
  std::map<std::string, Tensor> tensors;
};

} // namespace kiln::testing
