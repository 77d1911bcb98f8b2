// SPDX-License-Identifier: Apache-2.0
#include "targets/halide/check/Lanes.h"

namespace kiln::halide {

Lanes Lanes::ramp(int count, int64_t base, int64_t stride, Mark mark) {
  Lanes result;
  result.lanes = count;
  result.base = base;
  result.stride = count == 1 ? 0 : stride;
  result.common = mark;
  return result;
}

Lanes Lanes::zerosLike(const Lanes &marked) {
  Lanes result;
  result.lanes = marked.lanes;
  result.common = marked.common;
  result.marks = marked.marks;
  return result;
}

Lanes Lanes::opaqueOf(const Lanes &a) {
  Lanes result = zerosLike(a);
  result.common = std::max(result.common, isDrawn);
  for (Mark &mark : result.marks)
    mark = std::max(mark, isDrawn);
  return result;
}

Mark Lanes::largestMark() const { return marks.empty() ? common : *std::max_element(marks.begin(), marks.end()); }

void Lanes::setValue(int lane, int64_t value) {
  if (values.empty()) {
    if (this->value(lane) == value)
      return;
    llvm::SmallVector<int64_t, 0> all(lanes);
    for (int i = 0; i < lanes; ++i)
      all[i] = this->value(i);
    values = std::move(all);
  }
  values[lane] = value;
}

void Lanes::setMark(int lane, Mark mark) {
  if (marks.empty()) {
    if (common == mark)
      return;
    marks.assign(lanes, common);
  }
  marks[lane] = mark;
}

void Lanes::mergeMarks(const Lanes &other) {
  if (marks.empty() && other.marks.empty()) {
    common = std::max(common, other.common);
    return;
  }
  for (int i = 0; i < lanes; ++i)
    setMark(i, std::max(mark(i), other.mark(i)));
}

Lanes Lanes::repeated(int factor) const {
  if (isUniform() && marks.empty())
    return ramp(lanes * factor, base, 0, common);
  Lanes result = ramp(lanes * factor, 0, 0);
  for (int i = 0; i < lanes * factor; ++i) {
    result.setValue(i, value(i % lanes));
    result.setMark(i, mark(i % lanes));
  }
  return result;
}

int64_t wrap(Halide::Type type, Wide value) {
  int bits = type.bits();
  auto low = uint64_t(value);
  if (bits == 64)
    return int64_t(low);
  low &= (uint64_t(1) << bits) - 1;
  bool isNegative = type.is_int() && (low >> (bits - 1));
  return int64_t(isNegative ? low - (uint64_t(1) << bits) : low);
}

namespace {

__extension__ typedef unsigned __int128 UnsignedWide;

/// Returns the exact value of a lane.
Wide exact(Halide::Type type, int64_t value) {
  return type.is_uint() && type.bits() == 64 ? Wide(uint64_t(value)) : Wide(value);
}

Wide floorShift(Wide a, int64_t by) { return by > 64 ? (a < 0 ? -1 : 0) : a >> by; }

Wide shiftRight(Wide a, int64_t by) {
  if (by < 0)
    return by < -63 ? 0 : a * (Wide(1) << -by);
  return floorShift(a, by);
}

/// Rounds to nearest, halves upwards.
Wide roundingShiftRight(Wide a, int64_t by) {
  if (by <= 0)
    return shiftRight(a, by);
  return by > 64 ? 0 : floorShift(a + (Wide(1) << (by - 1)), by);
}

Wide saturate(Halide::Type type, Wide value) {
  Wide one = 1, least = type.is_int() ? -(one << (type.bits() - 1)) : 0,
       most = (one << (type.bits() - type.is_int())) - 1;
  return std::clamp(value, least, most);
}

Wide euclideanDivide(Wide a, Wide b) {
  if (b == 0)
    return 0;
  Wide quotient = a / b, rest = a % b;
  return rest < 0 ? (b > 0 ? quotient - 1 : quotient + 1) : quotient;
}

Wide computeOne(IntegerOp op, Halide::Type type, Wide a, Wide b) {
  switch (op) {
  case IntegerOp::Add:
    return a + b;
  case IntegerOp::Sub:
    return a - b;
  case IntegerOp::Mul:
    return Wide(static_cast<UnsignedWide>(a) * static_cast<UnsignedWide>(b));
  case IntegerOp::Div:
    return euclideanDivide(a, b);
  case IntegerOp::Mod:
    return b == 0 ? 0 : a - euclideanDivide(a, b) * b;
  case IntegerOp::DivTowardsZero:
    return b == 0 ? 0 : a / b;
  case IntegerOp::ModTowardsZero:
    return b == 0 ? 0 : a % b;
  case IntegerOp::Min:
    return std::min(a, b);
  case IntegerOp::Max:
    return std::max(a, b);
  case IntegerOp::Equal:
    return a == b;
  case IntegerOp::NotEqual:
    return a != b;
  case IntegerOp::Less:
    return a < b;
  case IntegerOp::LessEqual:
    return a <= b;
  case IntegerOp::And:
    return a & b;
  case IntegerOp::Or:
    return a | b;
  case IntegerOp::Xor:
    return a ^ b;
  case IntegerOp::ShiftLeft:
    return shiftRight(a, -int64_t(b));
  case IntegerOp::ShiftRight:
    return shiftRight(a, int64_t(b));
  case IntegerOp::RoundingShiftLeft:
    return roundingShiftRight(a, -int64_t(b));
  case IntegerOp::RoundingShiftRight:
    return roundingShiftRight(a, int64_t(b));
  case IntegerOp::HalvingAdd:
    return floorShift(a + b, 1);
  case IntegerOp::RoundingHalvingAdd:
    return floorShift(a + b + 1, 1);
  case IntegerOp::HalvingSub:
    return floorShift(a - b, 1);
  case IntegerOp::RoundingHalvingSub:
    return floorShift(a - b + 1, 1);
  case IntegerOp::AbsoluteDifference:
    return a < b ? b - a : a - b;
  case IntegerOp::SaturatingAdd:
    return saturate(type, a + b);
  case IntegerOp::SaturatingSub:
    return saturate(type, a - b);
  }
  return 0;
}

bool fits(Halide::Type type, const Lanes &ramp) {
  int64_t first = ramp.value(0), last = ramp.value(ramp.count() - 1);
  return wrap(type, first) == first && wrap(type, last) == last;
}

} // namespace

Lanes compute(IntegerOp op, Halide::Type result, Halide::Type left, const Lanes &a, Halide::Type right,
              const Lanes &b) {
  int count = std::max(a.count(), b.count());
  Lanes sum = Lanes::zerosLike(a.count() == count ? a : b);
  sum.mergeMarks(a.count() == count ? b : a);
  auto one = [&](int lane) {
    return wrap(result, computeOne(op, result, exact(left, a.value(lane)), exact(right, b.value(lane))));
  };
  // Ramps of index arithmetic cannot overflow 64 bits.
  if (a.isRamp() && b.isRamp() && left.bits() <= 32 && right.bits() <= 32 && sum.hasOneMark()) {
    Mark mark = sum.mark(0);
    if (a.isUniform() && b.isUniform())
      return Lanes::ramp(count, one(0), 0, mark);
    bool isSum = op == IntegerOp::Add || op == IntegerOp::Sub;
    if (isSum || (op == IntegerOp::Mul && (a.isUniform() || b.isUniform()))) {
      int64_t x = a.value(0), y = b.value(0), dx = a.rampStride(), dy = b.rampStride();
      Lanes ramp = op == IntegerOp::Add   ? Lanes::ramp(count, x + y, dx + dy, mark)
                   : op == IntegerOp::Sub ? Lanes::ramp(count, x - y, dx - dy, mark)
                                          : Lanes::ramp(count, x * y, dx * y + dy * x, mark);
      if (fits(result, ramp))
        return ramp;
    }
  }
  for (int i = 0; i < count; ++i)
    sum.setValue(i, one(i));
  return sum;
}

/// `decisive`: the value of one operand that decides the result.
static Lanes connect(const Lanes &a, const Lanes &b, bool decisive) {
  int count = std::max(a.count(), b.count());
  auto settles = [&](const Lanes &side, int lane) {
    return bool(side.value(lane)) == decisive && side.mark(lane) < firstUndefined;
  };
  Lanes result = Lanes::ramp(count, 0, 0);
  for (int i = 0; i < count; ++i) {
    bool byA = settles(a, i), byB = settles(b, i);
    result.setValue(i, byA || byB ? decisive : decisive ? a.value(i) || b.value(i) : a.value(i) && b.value(i));
    result.setMark(i, byA && byB ? std::min(a.mark(i), b.mark(i))
                      : byA      ? a.mark(i)
                      : byB      ? b.mark(i)
                                 : std::max(a.mark(i), b.mark(i)));
  }
  return result;
}

Lanes conjunction(const Lanes &a, const Lanes &b) { return connect(a, b, false); }
Lanes disjunction(const Lanes &a, const Lanes &b) { return connect(a, b, true); }

Lanes select(const Lanes &condition, const Lanes &yes, const Lanes &no) {
  if (condition.isUniform() && condition.hasOneMark() && condition.mark(0) == isKnown)
    return condition.value(0) ? yes : no;
  Lanes result = Lanes::ramp(yes.count(), 0, 0);
  for (int i = 0; i < yes.count(); ++i) {
    const Mark mark = condition.mark(i);
    bool isYes = condition.value(i);
    if (mark == isDrawn && (yes.mark(i) >= firstUndefined || no.mark(i) >= firstUndefined))
      isYes = yes.mark(i) < firstUndefined;
    const Lanes &chosen = isYes ? yes : no;
    result.setValue(i, chosen.value(i));
    result.setMark(i, std::max(mark, chosen.mark(i)));
  }
  return result;
}

Lanes convert(Halide::Type type, const Lanes &a, llvm::function_ref<Wide(int64_t)> update) {
  Lanes result = Lanes::zerosLike(a);
  if (a.isUniform() && a.hasOneMark())
    return Lanes::ramp(a.count(), wrap(type, update(a.value(0))), 0, a.mark(0));
  for (int i = 0; i < a.count(); ++i)
    result.setValue(i, wrap(type, update(a.value(i))));
  return result;
}

} // namespace kiln::halide
