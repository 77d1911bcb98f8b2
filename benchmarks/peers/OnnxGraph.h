// SPDX-License-Identifier: Apache-2.0
//
// Writes an ONNX model with a few nodes: only those fields of its protocol buffer that a runtime needs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace kiln::bench {

class OnnxGraph {
public:
  using Shape = std::vector<std::int64_t>;
  struct Attribute {
    std::string name;
    std::variant<std::int64_t, float> value;
  };

  void input(const std::string &name, const Shape &shape) { graph += field(11, tensorType(name, shape)); }
  void output(const std::string &name, const Shape &shape) { graph += field(12, tensorType(name, shape)); }
  /// Adds a constant.
  void weight(const std::string &name, const Shape &shape, std::span<const float> values);
  /// Adds an operator of the standard or of ONNX Runtime: "MatMul", "com.microsoft.MultiHeadAttention".
  void node(const std::string &op, const std::vector<std::string> &inputs, const std::vector<std::string> &outputs,
            const std::vector<Attribute> &attributes = {});
  /// Returns the file's contents.
  std::string bytes() const;

private:
  // A protocol buffer is a sequence of numbered fields: varints with seven bits per byte, or bytes with a length
  // prefix.
  static std::string varint(std::uint64_t value);
  static std::string field(int number, const std::string &bytes);
  static std::string field(int number, std::int64_t value);
  static std::string field(int number, float value);
  static std::string tensorType(const std::string &name, const Shape &shape);

  std::string graph;
};

} // namespace kiln::bench
