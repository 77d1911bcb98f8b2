// SPDX-License-Identifier: Apache-2.0
//
// Reads the golden outputs of oracle/ and compares with them. oracle/README.md says what the files hold.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace kiln::testing {

/// Throws std::runtime_error; of the systems that the tests run on some have no exceptions, and there the program ends.
[[noreturn]] void stop(const std::string &why);

/// Its bytes; none if it cannot be read.
std::string readWholeFile(const std::string &path);

/// A file of golden tensors.
class Golden {
public:
  /// `file` is relative to tests/models/oracle.
  explicit Golden(const std::string &file);

  std::vector<float> floats(const std::string &tensor) const { return read<float>(tensor, "F32"); }
  std::vector<std::int32_t> integers(const std::string &tensor) const { return read<std::int32_t>(tensor, "I32"); }

  /// How far the output `name`, such as "T7.logits", is from the golden one, as a part of its largest element: the
  /// larger one of the samples' error and of the sketch's, in which every element counts. Infinite when any value is
  /// NaN. Recorded as a property of the running test: `--gtest_output=xml` lists it.
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
  std::size_t data = 0; // where the tensors begin
  std::map<std::string, Tensor> tensors;
};

} // namespace kiln::testing
