// SPDX-License-Identifier: Apache-2.0
//
// The values of an expression's lanes, as the memory checker computes them: integers and booleans as numbers, of floats
// only whether they are defined. Ramps stay two numbers, so that a wide vector mostly costs no more than a scalar.
#pragma once

#include "Halide.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <algorithm>
#include <cstdint>

namespace kiln::halide {

/// Exact for all operations on 64 bits but products of unsigned numbers, which wrap.
__extension__ typedef __int128 Wide;

/// What is known of a lane. What is computed of two lanes has the larger mark of theirs.
using Mark = uint32_t;
constexpr Mark isKnown = 0;        // an integer that follows from the index arguments and the integers given
constexpr Mark isDrawn = 1;        // a float, or an integer that follows from one: any value will do
constexpr Mark firstUndefined = 2; // from here on: it was never given a value; where, MemoryModel.h says

class Lanes {
public:
  Lanes() = default;

  static Lanes scalar(int64_t value, Mark mark = isKnown) { return ramp(1, value, 0, mark); }
  /// base, base + stride, ...
  static Lanes ramp(int count, int64_t base, int64_t stride, Mark mark = isKnown);
  /// Lanes whose numbers are not computed.
  static Lanes opaque(int count, Mark mark = isDrawn) { return ramp(count, 0, 0, std::max(mark, isDrawn)); }
  /// The same of lanes from which they are computed.
  static Lanes opaqueOf(const Lanes &a);

  int count() const { return lanes; }
  int64_t value(int lane) const { return values.empty() ? base + stride * lane : values[lane]; }
  Mark mark(int lane) const { return marks.empty() ? common : marks[lane]; }
  /// base + lane * stride.
  bool isRamp() const { return values.empty(); }
  bool isUniform() const { return values.empty() && stride == 0; }
  int64_t rampStride() const { return stride; }
  bool hasOneMark() const { return marks.empty(); }
  /// The largest mark of all lanes.
  Mark largestMark() const;

  void setValue(int lane, int64_t value);
  void setMark(int lane, Mark mark);
  /// Each lane's mark is at least that of the other's.
  void mergeMarks(const Lanes &other);
  /// The same lanes `factor` times.
  Lanes repeated(int factor) const;
  /// As many lanes as `marked`, all zero, with its marks.
  static Lanes zerosLike(const Lanes &marked);

private:
  int lanes = 1;
  int64_t base = 0, stride = 0;         // if there are no values
  llvm::SmallVector<int64_t, 0> values; // otherwise
  Mark common = isKnown;                // if there are no marks
  llvm::SmallVector<Mark, 0> marks;     // otherwise
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

/// The number that `value` is in a type of integers or booleans.
int64_t wrap(Halide::Type type, Wide value);

Lanes compute(IntegerOp op, Halide::Type result, Halide::Type left, const Lanes &a, Halide::Type right, const Lanes &b);

/// Booleans: a lane that is false (true) by one side is defined.
Lanes conjunction(const Lanes &a, const Lanes &b);
Lanes disjunction(const Lanes &a, const Lanes &b);

/// A condition that is drawn chooses what is defined: whatever decided on computing that was the same condition.
Lanes select(const Lanes &condition, const Lanes &yes, const Lanes &no);

/// `update` of each value.
Lanes convert(Halide::Type type, const Lanes &a, llvm::function_ref<Wide(int64_t)> update);

} // namespace kiln::halide
