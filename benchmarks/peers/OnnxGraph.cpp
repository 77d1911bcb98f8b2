// SPDX-License-Identifier: Apache-2.0
//
// The field numbers are those of onnx.proto, the standard's definition of its format.
#include "benchmarks/peers/OnnxGraph.h"

#include <cstring>

namespace kiln::bench {

static constexpr int integerField = 0, bytesField = 2, fixed32Field = 5;
static constexpr int elementF32 = 1, attributeFloat = 1, attributeInteger = 2;
static constexpr std::int64_t formatVersion = 8, operatorVersion = 17, contributedVersion = 1;
static constexpr const char *contributed = "com.microsoft";

std::string OnnxGraph::varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7)
    bytes += static_cast<char>(value | 0x80);
  return bytes += static_cast<char>(value);
}

static std::uint64_t key(int number, int kind) { return static_cast<std::uint64_t>(number) << 3 | kind; }

std::string OnnxGraph::field(int number, const std::string &bytes) {
  return varint(key(number, bytesField)) + varint(bytes.size()) + bytes;
}

std::string OnnxGraph::field(int number, std::int64_t value) {
  return varint(key(number, integerField)) + varint(static_cast<std::uint64_t>(value));
}

std::string OnnxGraph::field(int number, float value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return varint(key(number, fixed32Field)) + bytes;
}

std::string OnnxGraph::tensorType(const std::string &name, const Shape &shape) {
  std::string extents;
  for (std::int64_t extent : shape)
    extents += field(1, field(1, extent));
  std::string tensor = field(1, std::int64_t{elementF32}) + field(2, extents);
  return field(1, name) + field(2, field(1, tensor));
}

void OnnxGraph::weight(const std::string &name, const Shape &shape, std::span<const float> values) {
  std::string tensor;
  for (std::int64_t extent : shape)
    tensor += field(1, extent);
  tensor += field(2, std::int64_t{elementF32}) + field(8, name);
  tensor += field(9, std::string(reinterpret_cast<const char *>(values.data()), values.size_bytes()));
  graph += field(5, tensor);
}

void OnnxGraph::node(const std::string &op, const std::vector<std::string> &inputs,
                     const std::vector<std::string> &outputs, const std::vector<Attribute> &attributes) {
  std::string node;
  for (const std::string &input : inputs)
    node += field(1, input);
  for (const std::string &output : outputs)
    node += field(2, output);
  std::size_t dot = op.rfind('.');
  node += field(4, dot == std::string::npos ? op : op.substr(dot + 1));
  for (const auto &[name, value] : attributes) {
    std::string attribute = field(1, name);
    if (const float *number = std::get_if<float>(&value))
      attribute += field(2, *number) + field(20, std::int64_t{attributeFloat});
    else
      attribute += field(3, std::get<std::int64_t>(value)) + field(20, std::int64_t{attributeInteger});
    node += field(5, attribute);
  }
  if (dot != std::string::npos)
    node += field(7, op.substr(0, dot));
  graph += field(1, node);
}

std::string OnnxGraph::bytes() const {
  std::string named = field(2, std::string("graph")) + graph;
  return field(1, formatVersion) + field(7, named) + field(8, field(2, operatorVersion)) +
         field(8, field(1, std::string(contributed)) + field(2, contributedVersion));
}

} // namespace kiln::bench
