// SPDX-License-Identifier: Apache-2.0
//
// The values of an expression's lanes, as the memory checker computes them: integers and booleans have values, floats
// are only known to be defined or not. A ramp is kept as base and stride, so that a wide vector mostly costs no more
// than a scalar.
#pragma once

#include "targets/halide/Compat.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <algorithm>
#include <cstdint>

namespace kiln::halide {

/// Exact for all operations on 64 bits except products of unsigned numbers, which wrap.
__extension__ typedef __int128 Wide;

/// What is known about a lane. A value that is computed from two lanes has the larger of their marks.
using Mark = uint32_t;
constexpr Mark isKnown = 0;        // an integer that depends only on the index arguments and the integer inputs
constexpr Mark isDrawn = 1;        // a float, or an integer that depends on one: the checker may use any value
constexpr Mark firstUndefined = 2; // from here on: the lane is undefined; MemoryModel::origin() says why

class Lanes {
public:
  Lanes() = default;

  static Lanes scalar(int64_t value, Mark mark = isKnown) { return ramp(1, value, 0, mark); }
  /// Returns the lanes base, base + stride, ...
  static Lanes ramp(int count, int64_t base, int64_t stride, Mark mark = isKnown);
  /// Returns lanes whose values are not computed.
  static Lanes opaque(int count, Mark mark = isDrawn) { return ramp(count, 0, 0, std::max(mark, isDrawn)); }
  /// Returns lanes that are computed from `a` and have its marks, without their values.
  static Lanes opaqueOf(const Lanes &a);

  int count() const { return lanes; }
  int64_t value(int lane) const { return values.empty() ? base + stride * lane : values[lane]; }
  Mark mark(int lane) const { return marks.empty() ? common : marks[lane]; }
  /// Whether each lane has the value base + lane * stride.
  bool isRamp() const { return values.empty(); }
  bool isUniform() const { return values.empty() && stride == 0; }
  int64_t rampStride() const { return stride; }
  bool hasOneMark() const { return marks.empty(); }
  /// Returns the largest mark of all lanes.
  Mark largestMark() const;

  void setValue(int lane, int64_t value);
  void setMark(int lane, Mark mark);
  /// Raises each lane's mark to at least that of `other`.
  void mergeMarks(const Lanes &other);
  /// Returns the lanes repeated `factor` times.
  Lanes repeated(int factor) const;
  /// Returns as many lanes as `marked` has, all zero, with its marks.
  static Lanes zerosLike(const Lanes &marked);

private:
  int lanes = 1;
  int64_t base = 0, stride = 0;         // used if `values` is empty
  llvm::SmallVector<int64_t, 0> values; // one value per lane, unless the lanes are a ramp
  Mark common = isKnown;                // used if `marks` is empty
  llvm::SmallVector<Mark, 0> marks;     // one mark per lane, unless they are equal
};

/// Operations on integers and booleans, which wrap to the result's type.
enum class IntegerOp {
  Add,
  Sub,
  Mul,
  Div, // the remainder is not negative; by 0: 0
  Mod,
  DivTowardsZero,
  ModTowardsZero,
  Min,
  Max,
  Equal,
  NotEqual,
  Less,
  LessEqual,
  And,
  Or,
  Xor,
  ShiftLeft, // by a negative number: to the right
  ShiftRight,
  RoundingShiftLeft,
  RoundingShiftRight,
  HalvingAdd,
  RoundingHalvingAdd,
  HalvingSub,
  RoundingHalvingSub,
  AbsoluteDifference,
  SaturatingAdd,
  SaturatingSub
};

/// Wraps `value` to a type of integers or booleans.
int64_t wrap(Halide::Type type, Wide value);

Lanes compute(IntegerOp op, Halide::Type result, Halide::Type left, const Lanes &a, Halide::Type right, const Lanes &b);

/// Boolean operations: a lane that one operand decides is defined.
Lanes conjunction(const Lanes &a, const Lanes &b);
Lanes disjunction(const Lanes &a, const Lanes &b);

/// Selects lanes. A condition that is drawn at random selects the operand that is defined: the same condition decided
/// whether to compute it.
Lanes select(const Lanes &condition, const Lanes &yes, const Lanes &no);

/// Applies `update` to each value, and wraps the results.
Lanes convert(Halide::Type type, const Lanes &a, llvm::function_ref<Wide(int64_t)> update);

} // namespace kiln::halide
