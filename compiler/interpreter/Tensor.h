// SPDX-License-Identifier: Apache-2.0
//
// The values of the interpreter: numbers in f64, each beside a bound on how far a right implementation may be from it.
// The interpreter reads the language from dsl/SPEC.md and shares no code with the lowering, so that it can judge it.
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

/// A number and the bound |computed - value| <= error that holds for every right implementation.
///
/// - error 0: exactly this number. An infinity or a NaN is always exact.
/// - error infinity: not determined, anything is right. `value` is what f64 arithmetic gave.
struct Value {
  double value = 0, error = 0;

  bool isDetermined() const { return error < std::numeric_limits<double>::infinity(); }
  bool isExactly(double number) const { return error == 0 && value == number; }
};

inline Value undetermined(double value = 0) { return {value, std::numeric_limits<double>::infinity()}; }

/// A tensor in f64 beside a bound, for each element, on how far a right f32 implementation may be from it.
struct Tensor {
  ElementType element{};
  TensorShape shape;          // row major
  std::vector<double> values; // i32, i8, boolean hold whole numbers
  std::vector<double> errors; // absolute, one a value; see Value

  static Tensor zeros(ElementType element, TensorShape shape);
  /// Values as the element type holds them: rounded to it, and exact but for numbers below the normal ones, which may
  /// count as 0. Throws std::runtime_error for a number that is none of an integer type, or if there are not as many as
  /// elements.
  static Tensor of(ElementType element, TensorShape shape, std::vector<double> values);

  std::int64_t size() const { return static_cast<std::int64_t>(values.size()); }
  int rank() const { return static_cast<int>(shape.size()); }
  Value at(std::int64_t flat) const { return {values[flat], errors[flat]}; }
  void set(std::int64_t flat, Value value) {
    values[flat] = value.value;
    errors[flat] = value.error;
  }
};

/// What a state holds of the value: small floats are stored as 0, or as they are where they were only moved.
Tensor flushed(Tensor value);

/// The number of elements; throws std::runtime_error for extents below 1, or more elements than memory is for.
std::int64_t elementCount(const TensorShape &shape);

/// The nearest number of the element type, ties to even; beyond the largest one an infinity. Throws std::runtime_error
/// for what an integer type does not hold.
double roundTo(ElementType element, double value);

/// "[3, 4]", "f32[3, 4]".
std::string describe(const TensorShape &shape);
std::string describe(const Tensor &tensor);

/// Named run-time extents.
using Extents = std::map<std::string, std::int64_t>;

/// The extent's value; throws std::runtime_error for a name that has none, or one outside its bounds.
std::int64_t evaluate(const Dim &dim, const Extents &extents);
TensorShape evaluate(const std::vector<Dim> &dims, const Extents &extents);

} // namespace kiln::interpreter
