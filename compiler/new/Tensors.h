// SPDX-License-Identifier: Apache-2.0
//
// What tensors a checkpoint has, by the headers of its safetensors files; no number is read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kiln::newproject {

class Tensors {
public:
  /// Of model.safetensors, or of the files of model.safetensors.index.json. Throws a Refusal.
  static Tensors read(const std::string &folder);

  bool has(const std::string &name) const { return shapes.contains(name); }
  /// Whether a name begins so.
  bool hasPrefix(const std::string &prefix) const;
  /// Refuses a tensor that is not there or of another shape.
  void require(const std::string &name, const std::vector<std::int64_t> &shape) const;

private:
  std::map<std::string, std::vector<std::int64_t>> shapes;
};

} // namespace kiln::newproject
