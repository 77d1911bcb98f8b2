// SPDX-License-Identifier: Apache-2.0
//
// Attention kernels of f16 and bf16, with their inputs.
#pragma once

#include "ProductKernel.h"
#include "compiler/interpreter/Tensor.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace kiln::testing {

struct HalfType {
  std::string name;
  ElementType element;
};
inline const HalfType types[] = {{"f16", ElementType::f16}, {"bf16", ElementType::bf16}};

/// kiln.attention of [2, s0, heads * headDim] and [2, s1, keyHeads * ..], with the heads as a separate axis in memory.
/// Without isCross there are as many keys as queries.
struct MmaCase {
  HalfType type = types[0];
  int heads = 2, keyHeads = 2, headDim = 64, channels = 0; // channels: width of the values' heads; 0: headDim
  int bound = 130;
  bool isCausal = false, hasMask = false, hasLengths = false, isCross = false;
  int window = 0; // with causal masks; 0: none

  int width() const { return channels ? channels : headDim; }
};

inline std::string kernelOf(const MmaCase &s) {
  KernelText t({{1, s.bound}, {1, s.bound}});
  const std::string keys = s.isCross ? "s1" : "s0";
  auto rows = [&](const std::string &count, int width) { return t.type({"2", count, number(width)}, s.type.name); };
  const std::string q = rows("s0", s.heads * s.headDim), k = rows(keys, s.keyHeads * s.headDim),
                    v = rows(keys, s.keyHeads * s.width()), result = rows("s0", s.heads * s.width());
  std::string arguments = "%q: " + q + ", %k: " + k + ", %v: " + v, types = q + ", " + k + ", " + v, options;
  auto add = [&](const std::string &word, const std::string &name, const std::string &type) {
    arguments += ", " + name + ": " + type, types += ", " + type, options += word + " " + name + " ";
  };
  if (s.hasMask)
    add("mask", "%m", t.type({"s0", keys}, s.type.name));
  if (s.hasLengths)
    add("lengths", "%l", t.type({"2"}, "i32"));
  options += "heads = " + number(s.heads);
  if (s.heads != s.keyHeads)
    options += " key_value_heads = " + number(s.keyHeads);
  options += " scale = " + std::to_string(1 / std::sqrt(double(s.headDim))) + (s.isCausal ? " causal" : "") +
             (s.window ? " window = " + number(s.window) : "");
  const std::string stored = t.type({"2", "s0", number(s.heads), number(s.width())}, s.type.name),
                    bounds = "1, " + number(s.bound);
  return "func.func private @f(%s0: index, %s1: index, " + arguments + ") -> " + stored +
         " attributes {kiln.kernel, kiln.bounds = array<i64: " + bounds + ", " + bounds +
         ">} {\n  %0 = " + "kiln.attention %q, %k, %v " + options + " : (" + types + ") -> " + result +
         "\n  %1 = kiln.reshape %0 : " + result + " -> " + stored + "\n  return %1 : " + stored + "\n}\n";
}

inline std::vector<Tensor> inputsOf(const MmaCase &s, const std::string &text, int64_t queries, int64_t keys) {
  std::vector<Tensor> inputs = randomInputs(text, {queries, keys}, 1, int(keys) + 1);
  for (size_t i = 0; i < inputs.size() - s.hasLengths; ++i)
    for (double &value : inputs[i].values)
      value = interpreter::roundTo(s.type.element, value);
  if (s.hasMask)
    for (int64_t i = 0; i < queries; ++i)
      for (int64_t j = 1; j < keys; j += 3)
        inputs[3].at({i, j}) = -std::numeric_limits<double>::infinity();
  return inputs;
}

inline void check(DeviceKernel &kernel, int64_t queries, int64_t keys, const std::vector<Tensor> &inputs) {
  SCOPED_TRACE("queries " + number(queries) + " keys " + number(keys));
  kernel.check({queries, keys}, inputs);
}

inline void check(DeviceKernel &kernel, const MmaCase &s, const std::string &text, int64_t queries, int64_t keys) {
  check(kernel, queries, keys, inputsOf(s, text, queries, keys));
}

/// Runs with lengths 0 and 37. Where no key counts, the result is 0, also if a value is NaN.
inline void expectZerosWhereNothingCounts(DeviceKernel &kernel, const MmaCase &s, const std::string &text,
                                          int64_t queries, int64_t keys) {
  std::vector<Tensor> inputs = inputsOf(s, text, queries, keys);
  inputs[3].values = {0, 37};
  inputs[2].at({0, 3, 0}) = NAN;
  const Tensor got = kernel.run({queries, keys}, inputs)[0];
  for (int64_t d = 0; d < s.headDim; ++d)
    for (int64_t i = 0; i < queries; ++i) {
      ASSERT_EQ(got.at({0, i, 0, d}), 0);
      ASSERT_TRUE(std::isfinite(got.at({1, i, 0, d})));
    }
}

} // namespace kiln::testing
