// SPDX-License-Identifier: Apache-2.0
//
// Builds the text of a kernel function op by op.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace kiln::testing {

/// An SSA value of the kernel: its name and its type.
struct Value {
  std::string name, type;
};

/// A tensor and the index of its element, such as "h, k floordiv 2, d".
struct Read {
  Value tensor;
  std::string at;
};

/// An attention over the loops b, h, q, k, d and e, or without b: a batch axis, heads, queries, keys, and the channels
/// of queries and keys and of values.
struct AttentionText {
  std::vector<std::string> extents; // of the loops
  Read query, key, value;
  std::optional<Read> mask = {}, lengths = {}; // a mask is added to scores
  double scale = 0.5;
  std::string causalOffset = {}; // of a query's last key; empty: keys have no such limit
  int window = 0;                // with causal masks; 0: none
};

class KernelText {
public:
  /// Takes the bounds of each index argument s0, s1, ...
  explicit KernelText(std::vector<std::pair<int, int>> symbols = {}) : symbols(std::move(symbols)) {}

  /// Returns a tensor type; dimensions are numbers or expressions of s0, s1, ..., such as "s0 * 2".
  std::string type(const std::vector<std::string> &extents, const std::string &element = "f32") const;
  /// Returns a type with an encoding such as "#kiln.tiled<0, 16>".
  static std::string tiled(int rows, int columns, const std::string &layout);

  Value argument(const std::string &type);
  /// Adds an empty tensor, which as an input defines the sizes of loops.
  Value empty(const std::string &type);
  /// Adds a scalar constant, such as "0.0 : f32".
  Value constant(const std::string &literal);
  Value fill(const Value &scalar, const std::string &type);
  /// Adds a linalg.generic over loops "p" and "r" named a, b, c, ... `maps` are those of inputs, then of outputs: "a,
  /// c". The body names its inputs %x0, %x1, ..., its outputs %y0, ... and ends with a yield. Without `initial` outputs
  /// are empty tensors.
  std::vector<Value> generic(const std::string &loops, const std::vector<Value> &inputs,
                             const std::vector<std::string> &resultTypes, const std::vector<std::string> &maps,
                             const std::string &body, const std::vector<Value> &initial = {});
  /// Adds a linalg.generic with one result.
  Value one(const std::string &loops, const std::vector<Value> &inputs, const std::string &resultType,
            const std::vector<std::string> &maps, const std::string &body);
  /// Adds a reduction with one result and the initial value `start`.
  Value reduce(const std::string &loops, const std::vector<Value> &inputs, const std::string &resultType,
               const std::vector<std::string> &maps, const std::string &start, const std::string &body);

  /// Adds kiln.kernel_attention, whose result is [b, q, h, e] of f32.
  Value attention(const AttentionText &a);

  /// Adds an op with one result, given as its text after the equals sign.
  Value op(const std::string &text, const std::string &resultType);
  /// Returns an affine map without dimensions over the symbols, such as "affine_map<()[s0] -> (s0, 8)>".
  std::string map(const std::vector<std::string> &results) const;

  /// Returns the whole text. `attributes` are those of the kernel, such as "kiln.inplace = array<i64: 0>".
  std::string finish(const std::vector<Value> &results, const std::string &attributes = "") const;

private:
  Value fresh(const std::string &type) { return {"%v" + std::to_string(next++), type}; }
  std::vector<std::pair<int, int>> symbols;
  std::vector<Value> arguments;
  std::string body;
  int next = 0;
};

} // namespace kiln::testing
