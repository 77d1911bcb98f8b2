// SPDX-License-Identifier: Apache-2.0
//
// Writes an ONNX model of a few nodes: the fields of its protocol buffer that a runtime asks for, and no more.
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
  /// A constant.
  void weight(const std::string &name, const Shape &shape, std::span<const float> values);
  /// An operator of the standard's or of ONNX Runtime's own: "MatMul", "com.microsoft.MultiHeadAttention".
  void node(const std::string &op, const std::vector<std::string> &inputs, const std::vector<std::string> &outputs,
            const std::vector<Attribute> &attributes = {});
  /// The file.
  std::string bytes() const;

private:
  // A protocol buffer is a sequence of numbered fields: integers of seven bits a byte, or bytes behind their count.
  static std::string varint(std::uint64_t value);
  static std::string field(int number, const std::string &bytes);
  static std::string field(int number, std::int64_t value);
  static std::string field(int number, float value);
  static std::string tensorType(const std::string &name, const Shape &shape);

  std::string graph;
};

} // namespace kiln::bench
