// SPDX-License-Identifier: Apache-2.0
//
// The values of the interpreter: f64 numbers, each with a bound on the error of a correct implementation. The
// interpreter implements dsl/SPEC.md and shares no code with the lowering, so that it can serve as the reference.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "kiln/graph.h"

namespace kiln::interpreter {

using TensorShape = std::vector<std::int64_t>;

/// A number with a bound |computed - value| <= error that holds for every correct implementation.
///
/// - error 0: exactly this number. An infinity or a NaN is always exact.
/// - error infinity: undetermined, anything is correct. `value` is the result of f64 arithmetic.
struct Value {
  double value = 0, error = 0;

  bool isDetermined() const { return error < std::numeric_limits<double>::infinity(); }
  bool isExactly(double number) const { return error == 0 && value == number; }
};

inline Value undetermined(double value = 0) { return {value, std::numeric_limits<double>::infinity()}; }

/// An f64 tensor with a bound, for each element, on the error of a correct f32 implementation.
struct Tensor {
  ElementType element{};
  TensorShape shape;          // row major
  std::vector<double> values; // i32, i8, boolean hold integers
  std::vector<double> errors; // absolute, one per value; see Value

  static Tensor zeros(ElementType element, TensorShape shape);
  /// Creates a tensor with values rounded to the element type. They are exact, except for subnormal numbers, which may
  /// be flushed to 0. Throws std::runtime_error for a number that an integer type cannot represent, or if the number of
  /// values is not that of the elements.
  static Tensor of(ElementType element, TensorShape shape, std::vector<double> values);

  std::int64_t size() const { return static_cast<std::int64_t>(values.size()); }
  int rank() const { return static_cast<int>(shape.size()); }
  Value at(std::int64_t flat) const { return {values[flat], errors[flat]}; }
  void set(std::int64_t flat, Value value) {
    values[flat] = value.value;
    errors[flat] = value.error;
  }
};

/// Returns the value as a state stores it: small floats are flushed to 0, or kept where they were only moved.
Tensor flushed(Tensor value);

/// Returns the number of elements; throws std::runtime_error for dimensions below 1, or for more elements than
/// supported.
std::int64_t elementCount(const TensorShape &shape);

/// Returns the nearest number of the element type, ties to even; an infinity beyond the largest one. Throws
/// std::runtime_error for a number that an integer type cannot represent.
double roundTo(ElementType element, double value);

/// "[3, 4]", "f32[3, 4]".
std::string describe(const TensorShape &shape);
std::string describe(const Tensor &tensor);

/// Sizes of named dynamic dimensions.
using Extents = std::map<std::string, std::int64_t>;

/// Returns the value of the dimension; throws std::runtime_error for a name without a value, or a value outside of its
/// bounds.
std::int64_t evaluate(const Dim &dim, const Extents &extents);
TensorShape evaluate(const std::vector<Dim> &dims, const Extents &extents);

} // namespace kiln::interpreter
