// SPDX-License-Identifier: Apache-2.0
//
// The names and shapes of a checkpoint's tensors, from the headers of its safetensors files; no values are read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kiln::newproject {

class Tensors {
public:
  /// Reads model.safetensors, or the files of model.safetensors.index.json. Throws a Refusal.
  static Tensors read(const std::string &folder);

  bool has(const std::string &name) const { return shapes.contains(name); }
  /// Whether some name has the prefix.
  bool hasPrefix(const std::string &prefix) const;
  /// Throws a Refusal if the tensor is missing or has another shape.
  void require(const std::string &name, const std::vector<std::int64_t> &shape) const;

private:
  std::map<std::string, std::vector<std::int64_t>> shapes;
};

} // namespace kiln::newproject
