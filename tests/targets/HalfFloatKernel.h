// SPDX-License-Identifier: Apache-2.0
//
// Kernels of kiln ops whose floats are f16 or bf16, and their inputs.
#pragma once

#include "Harness.h"
#include "compiler/interpreter/Tensor.h"

namespace kiln::testing {

/// A 16-bit float type, and the largest relative error of a rounding.
struct HalfFloat {
  std::string name;
  ElementType element;
  double unit;

  double round(double value) const { return interpreter::roundTo(element, value); }
};
inline const HalfFloat halfFloats[] = {{"f16", ElementType::f16, 0x1p-11}, {"bf16", ElementType::bf16, 0x1p-8}};

/// Returns a kernel of kiln ops with up to `bound` rows; F in the text is replaced by the type.
inline std::string kernelOf(const HalfFloat &type, const std::string &arguments, const std::string &result,
                            const std::string &body, int bound = 200) {
  std::string text = "func.func private @f(%s0: index, " + arguments + ") -> " + result +
                     " attributes {kiln.kernel, kiln.bounds = array<i64: 1, " + std::to_string(bound) + ">} {\n" +
                     body + " : " + result + "\n}\n";
  for (size_t at = 0; (at = text.find('F', at)) != std::string::npos; at += type.name.size())
    text.replace(at, 1, type.name);
  return text;
}

/// Returns the type of rows of a width, for kernelOf.
inline std::string rows(int width, const std::string &element = "F") {
  const std::string n = std::to_string(width);
  return "tensor<?x" + n + "x" + element + ", affine_map<()[s0] -> (s0, " + n + ")>>";
}

/// Returns the tensor rounded to the type.
inline Tensor rounded(const HalfFloat &type, Tensor tensor) {
  for (double &value : tensor.values)
    value = type.round(value);
  return tensor;
}

} // namespace kiln::testing
