// SPDX-License-Identifier: Apache-2.0
//
// setp and set: comparisons to predicates and to masks; slct; testp.
#include <cmath>

#include "Decoder.h"
#include "Lanes.h"

namespace kiln::ptx {
namespace {

enum class Relation : unsigned { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };
constexpr std::string_view relationNames[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                              "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
enum class Combine : unsigned { none, conjunction, disjunction, exclusive };

/// Relations with a u hold for unordered operands.
template <class T> bool holds(Relation relation, T a, T b) {
  bool unordered = false;
  if constexpr (std::is_floating_point_v<T>)
    unordered = std::isnan(a) || std::isnan(b);
  switch (relation) {
  case Relation::eq:
    return !unordered && a == b;
  case Relation::ne:
    return !unordered && a != b;
  case Relation::lt:
    return !unordered && a < b;
  case Relation::le:
    return !unordered && a <= b;
  case Relation::gt:
    return !unordered && a > b;
  case Relation::ge:
    return !unordered && a >= b;
  case Relation::equ:
    return unordered || a == b;
  case Relation::neu:
    return unordered || a != b;
  case Relation::ltu:
    return unordered || a < b;
  case Relation::leu:
    return unordered || a <= b;
  case Relation::gtu:
    return unordered || a > b;
  case Relation::geu:
    return unordered || a >= b;
  case Relation::num:
    return !unordered;
  case Relation::nan:
    return unordered;
  }
  return false;
}

/// How a comparison converts its operands.
struct Plain {
  template <class T> static T of(T value) { return value; }
};
struct Flushing {
  static float of(float value) { return flushed(value); }
};
template <class Format> struct Decoded {
  static double of(std::uint16_t bits) { return Format::decode(bits); }
};

template <class T, class View> std::uint32_t compare(Warp &warp, const Instruction &i, unsigned first) {
  const T *a = warp.read<T>(i.operands[first]), *b = warp.read<T>(i.operands[first + 1]);
  const auto relation = static_cast<Relation>(i.flags[0]);
  std::uint32_t lanes = 0;
  for (unsigned lane = 0; lane < warpSize; ++lane)
    lanes |= static_cast<std::uint32_t>(holds(relation, View::of(a[lane]), View::of(b[lane]))) << lane;
  return lanes;
}

std::uint32_t combined(Combine combine, std::uint32_t a, std::uint32_t b) {
  switch (combine) {
  case Combine::none:
    return a;
  case Combine::conjunction:
    return a & b;
  case Combine::disjunction:
    return a | b;
  case Combine::exclusive:
    return a ^ b;
  }
  return a;
}

/// setp. Operands: result, negated result, both sides, and the predicate to combine with. flags: relation, combination.
template <class T, class View> void setPredicate(Warp &warp, const Instruction &i) {
  const std::uint32_t lanes = compare<T, View>(warp, i, 2);
  const auto combine = static_cast<Combine>(i.flags[1]);
  const std::uint32_t with = combine == Combine::none ? 0 : warp.readPredicate(i.operands[4]);
  warp.writePredicate(i.operands[0], combined(combine, lanes, with));
  warp.writePredicate(i.operands[1], combined(combine, ~lanes, with));
}

/// set: all ones or zero, or 1.0f or zero; flags[2] is the value for true.
template <class T, class View> void setMask(Warp &warp, const Instruction &i) {
  const std::uint32_t lanes = compare<T, View>(warp, i, 1);
  std::uint32_t result[warpSize];
  for (unsigned lane = 0; lane < warpSize; ++lane)
    result[lane] = lanes >> lane & 1 ? i.flags[2] : 0;
  warp.put(i.operands[0], result);
}

template <template <class, class> class Shape> Handler handlerOf(Type type, bool ftz) {
  switch (type) {
  case Type::f32:
    return ftz ? Shape<float, Flushing>::run : Shape<float, Plain>::run;
  case Type::f64:
    return Shape<double, Plain>::run;
  case Type::f16:
    return Shape<std::uint16_t, Decoded<Half>>::run;
  case Type::bf16:
    return Shape<std::uint16_t, Decoded<Brain>>::run;
  default:
    return forIntegers<Shape, Plain>(type);
  }
}
template <class T, class View> struct SetPredicate {
  static constexpr Handler run = &setPredicate<T, View>;
};
template <class T, class View> struct SetMask {
  static constexpr Handler run = &setMask<T, View>;
};

Relation takeRelation(Decoding &d) {
  constexpr std::pair<std::string_view, Relation> others[] = {
      {"lo", Relation::lt}, {"ls", Relation::le}, {"hi", Relation::gt}, {"hs", Relation::ge}};
  for (const auto &[name, relation] : others)
    if (d.take(name))
      return relation;
  for (unsigned i = 0; i < std::size(relationNames); ++i)
    if (d.take(relationNames[i]))
      return static_cast<Relation>(i);
  d.fail("the comparison has no relation");
}

void decodeSetp(Decoding &d) {
  d.out.flags[0] = static_cast<unsigned>(takeRelation(d));
  const std::string_view combine = d.takeOneOf({"and", "or", "xor"});
  d.out.flags[1] = static_cast<unsigned>(combine == "and"   ? Combine::conjunction
                                         : combine == "or"  ? Combine::disjunction
                                         : combine == "xor" ? Combine::exclusive
                                                            : Combine::none);
  const bool ftz = d.take("ftz");
  const Type type = d.takeType();
  const Handler handler = handlerOf<SetPredicate>(type, ftz);
  if (!handler)
    d.failType(type);
  d.expectOperands(combine.empty() ? 3 : 4);
  const syntax::Operand &to = d.operand(0);
  const bool both = to.form == syntax::Operand::Form::pair;
  d.predicateTarget(both ? to.parts[0] : to);
  d.predicateTarget(both ? to.parts[1] : d.nowhere());
  d.source(d.operand(1), type);
  d.source(d.operand(2), type);
  if (!combine.empty())
    d.predicateSource(d.operand(3));
  d.emit(handler);
}

void decodeSet(Decoding &d) {
  d.out.flags[0] = static_cast<unsigned>(takeRelation(d));
  const bool ftz = d.take("ftz");
  const Type result = d.takeType(), type = d.takeType();
  const Handler handler = handlerOf<SetMask>(type, ftz);
  if (!handler || bitsOf(result) != 32)
    d.failType(type);
  d.out.flags[2] = result == Type::f32 ? 0x3f800000U : 0xffffffffU;
  d.expectOperands(3);
  d.target(d.operand(0), result);
  d.source(d.operand(1), type);
  d.source(d.operand(2), type);
  d.emit(handler);
}

/// slct: selects the first value where the third one is not negative.
template <class Selector> void selectBySign(Warp &warp, const Instruction &i) {
  const auto *a = warp.read<std::uint32_t>(i.operands[1]), *b = warp.read<std::uint32_t>(i.operands[2]);
  const auto *c = warp.read<Selector>(i.operands[3]);
  std::uint32_t result[warpSize];
  for (unsigned lane = 0; lane < warpSize; ++lane)
    result[lane] = c[lane] >= 0 ? a[lane] : b[lane];
  warp.put(i.operands[0], result);
}

void decodeSlct(Decoding &d) {
  d.take("ftz");
  const Type type = d.takeType(), selector = d.takeType();
  if (bitsOf(type) != 32 || (selector != Type::s32 && selector != Type::f32))
    d.failType(type);
  d.expectOperands(4);
  d.target(d.operand(0), type);
  d.source(d.operand(1), type);
  d.source(d.operand(2), type);
  d.source(d.operand(3), selector);
  d.emit(selector == Type::s32 ? &selectBySign<std::int32_t> : &selectBySign<float>);
}

/// testp. flags: finite, infinite, number, notanumber, normal, subnormal.
template <class T> void test(Warp &warp, const Instruction &i) {
  const T *a = warp.read<T>(i.operands[1]);
  std::uint32_t lanes = 0;
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    const T value = a[lane];
    const bool answers[] = {std::isfinite(value),
                            std::isinf(value),
                            !std::isnan(value),
                            std::isnan(value),
                            std::isnormal(value) || value == 0,
                            std::fpclassify(value) == FP_SUBNORMAL};
    lanes |= static_cast<std::uint32_t>(answers[i.flags[0]]) << lane;
  }
  warp.writePredicate(i.operands[0], lanes);
}

void decodeTestp(Decoding &d) {
  constexpr std::string_view questions[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"};
  unsigned question = 0;
  while (question < std::size(questions) && !d.take(questions[question]))
    ++question;
  const Type type = d.takeType();
  if (question == std::size(questions) || (type != Type::f32 && type != Type::f64))
    d.failType(type);
  d.out.flags[0] = question;
  d.expectOperands(2);
  d.predicateTarget(d.operand(0));
  d.source(d.operand(1), type);
  d.emit(type == Type::f32 ? &test<float> : &test<double>);
}

} // namespace

std::span<const Opcode> compareOpcodes() {
  static constexpr Opcode opcodes[] = {
      {"set", &decodeSet}, {"setp", &decodeSetp}, {"slct", &decodeSlct}, {"testp", &decodeTestp}};
  return opcodes;
}

} // namespace kiln::ptx
