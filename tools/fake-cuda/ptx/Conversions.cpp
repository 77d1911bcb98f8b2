// SPDX-License-Identifier: Apache-2.0
//
// cvt: between integers and floating-point types, and from two f32 to a pair of 16-bit floats.
#include <cmath>
#include <limits>

#include "Decoder.h"
#include "Lanes.h"

namespace kiln::ptx {
namespace {

enum Rounding : std::uint32_t { nearest, towardZero, integerNearest, integerZero, integerDown, integerUp, awayTf32 };

/// Indices and values of cvt's flags.
constexpr unsigned sourceType = 0, targetType = 1, rounding = 2, options = 3;
enum Options : std::uint32_t { saturates = 1, flushes = 2, rectifies = 4 };

template <class T> void gatherAs(const Warp &warp, const Operand &operand, std::uint64_t (&values)[warpSize]) {
  const T *row = warp.read<T>(operand);
  for (unsigned lane = 0; lane < warpSize; ++lane)
    values[lane] = row[lane];
}
void gather(const Warp &warp, const Operand &operand, std::uint64_t (&values)[warpSize]) {
  if (operand.bits == 16)
    gatherAs<std::uint16_t>(warp, operand, values);
  else if (operand.bits == 32)
    gatherAs<std::uint32_t>(warp, operand, values);
  else
    gatherAs<std::uint64_t>(warp, operand, values);
}

template <class T> void scatterAs(Warp &warp, const Operand &operand, const std::uint64_t (&values)[warpSize]) {
  T narrow[warpSize];
  for (unsigned lane = 0; lane < warpSize; ++lane)
    narrow[lane] = static_cast<T>(values[lane]);
  warp.put(operand, narrow);
}
void scatter(Warp &warp, const Operand &operand, const std::uint64_t (&values)[warpSize]) {
  if (operand.bits == 16)
    scatterAs<std::uint16_t>(warp, operand, values);
  else if (operand.bits == 32)
    scatterAs<std::uint32_t>(warp, operand, values);
  else
    scatterAs<std::uint64_t>(warp, operand, values);
}

/// Returns the low bits of the type, sign-extended if it is signed.
std::uint64_t extended(std::uint64_t value, Type type) {
  const unsigned away = 64 - bitsOf(type);
  return isSigned(type) ? static_cast<std::uint64_t>(static_cast<std::int64_t>(value << away) >> away)
                        : value << away >> away;
}

/// Clamps a value of type `from` to the range of `to`.
std::uint64_t clamped(std::uint64_t value, Type from, Type to) {
  __int128 number =
      isSigned(from) ? static_cast<__int128>(static_cast<std::int64_t>(value)) : static_cast<__int128>(value);
  const unsigned bits = bitsOf(to);
  const __int128 one = 1;
  const __int128 least = isSigned(to) ? -(one << (bits - 1)) : 0;
  const __int128 most = isSigned(to) ? (one << (bits - 1)) - 1 : (one << bits) - 1;
  number = number < least ? least : number > most ? most : number;
  return static_cast<std::uint64_t>(number);
}

void integers(Warp &warp, const Instruction &i) {
  const auto from = static_cast<Type>(i.flags[sourceType]), to = static_cast<Type>(i.flags[targetType]);
  std::uint64_t values[warpSize];
  gather(warp, i.operands[1], values);
  for (std::uint64_t &value : values)
    value = extended(value, from);
  if (i.flags[options] & saturates)
    for (std::uint64_t &value : values)
      value = clamped(value, from, to);
  for (std::uint64_t &value : values)
    value = extended(value, to);
  scatter(warp, i.operands[0], values);
}

double decoded(std::uint64_t bits, Type type, bool flush) {
  switch (type) {
  case Type::f16:
    return fromF16(static_cast<std::uint16_t>(bits));
  case Type::bf16:
    return fromBf16(static_cast<std::uint16_t>(bits));
  case Type::f64:
    return std::bit_cast<double>(bits);
  default: {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    return flush ? flushed(value) : value;
  }
  }
}

double roundedToInteger(double value, std::uint32_t how) {
  switch (how) {
  case integerNearest:
    return std::nearbyint(value);
  case integerZero:
    return std::trunc(value);
  case integerDown:
    return std::floor(value);
  case integerUp:
    return std::ceil(value);
  default:
    return value;
  }
}

std::uint64_t encoded(double value, Type type, std::uint32_t how, bool flush) {
  switch (type) {
  case Type::f16:
    return how == towardZero ? toF16TowardZero(value) : toF16(value);
  case Type::bf16:
    return how == towardZero ? toBf16TowardZero(value) : toBf16(value);
  case Type::f64:
    return std::bit_cast<std::uint64_t>(value);
  case Type::tf32:
    return toTf32(static_cast<float>(value));
  default: {
    const auto narrow = static_cast<float>(value);
    return std::bit_cast<std::uint32_t>(flush ? flushed(narrow) : narrow);
  }
  }
}

double limited(double value, std::uint32_t how) {
  if (how & saturates)
    return std::isnan(value) ? 0 : std::fmin(std::fmax(value, 0), 1);
  return how & rectifies ? std::fmax(value, 0) : value;
}

void floats(Warp &warp, const Instruction &i) {
  const auto from = static_cast<Type>(i.flags[sourceType]), to = static_cast<Type>(i.flags[targetType]);
  const bool flush = i.flags[options] & flushes;
  std::uint64_t values[warpSize];
  gather(warp, i.operands[1], values);
  eachLane(warp.executing, [&](unsigned lane) {
    double value = roundedToInteger(decoded(values[lane], from, flush), i.flags[rounding]);
    values[lane] = encoded(limited(value, i.flags[options]), to, i.flags[rounding], flush);
  });
  scatter(warp, i.operands[0], values);
}

/// Rounds to the nearest representable integer; NaN becomes zero.
void floatsToIntegers(Warp &warp, const Instruction &i) {
  const auto from = static_cast<Type>(i.flags[sourceType]), to = static_cast<Type>(i.flags[targetType]);
  std::uint64_t values[warpSize];
  gather(warp, i.operands[1], values);
  eachLane(warp.executing, [&](unsigned lane) {
    const double value = roundedToInteger(decoded(values[lane], from, i.flags[options] & flushes), i.flags[rounding]);
    const unsigned bits = bitsOf(to);
    const double most = std::ldexp(1.0, static_cast<int>(isSigned(to) ? bits - 1 : bits));
    const double least = isSigned(to) ? -most : 0;
    if (std::isnan(value))
      values[lane] = 0;
    else if (value >= most)
      values[lane] = isSigned(to) ? (1ULL << (bits - 1)) - 1 : ~0ULL;
    else if (value <= least)
      values[lane] = isSigned(to) ? static_cast<std::uint64_t>(-1) << (bits - 1) : 0;
    else
      values[lane] = isSigned(to) ? static_cast<std::uint64_t>(static_cast<std::int64_t>(value))
                                  : static_cast<std::uint64_t>(value);
    values[lane] = extended(values[lane], to);
  });
  scatter(warp, i.operands[0], values);
}

void integersToFloats(Warp &warp, const Instruction &i) {
  const auto from = static_cast<Type>(i.flags[sourceType]), to = static_cast<Type>(i.flags[targetType]);
  std::uint64_t values[warpSize];
  gather(warp, i.operands[1], values);
  eachLane(warp.executing, [&](unsigned lane) {
    const std::uint64_t value = extended(values[lane], from);
    // Directly to f32: a conversion through f64 would round twice.
    if (to == Type::f32)
      values[lane] = std::bit_cast<std::uint32_t>(isSigned(from) ? static_cast<float>(static_cast<std::int64_t>(value))
                                                                 : static_cast<float>(value));
    else
      values[lane] =
          encoded(isSigned(from) ? static_cast<double>(static_cast<std::int64_t>(value)) : static_cast<double>(value),
                  to, i.flags[rounding], false);
  });
  scatter(warp, i.operands[0], values);
}

/// cvt.rn.f16x2.f32 d, a, b: a is the high half.
void pairs(Warp &warp, const Instruction &i) {
  const auto to = static_cast<Type>(i.flags[targetType]);
  const auto *high = warp.read<float>(i.operands[1]), *low = warp.read<float>(i.operands[2]);
  std::uint32_t result[warpSize] = {};
  eachLane(warp.executing, [&](unsigned lane) {
    const auto one = [&](float value) {
      return static_cast<std::uint32_t>(encoded(limited(value, i.flags[options]), to, i.flags[rounding], false));
    };
    result[lane] = one(low[lane]) | one(high[lane]) << 16;
  });
  warp.put(i.operands[0], result);
}

/// Checks that the rounding modifier is valid for the conversion.
void checkRounding(Decoding &d, std::string_view how, Type to, Type from) {
  if (how == "rna" && to != Type::tf32)
    d.fail("rounding .rna is for tf32");
  if (to == Type::tf32 && how != "rna")
    d.fail("tf32 is modelled with rounding .rna");
  if (how == "rz" && bitsOf(to) != 16 && to != Type::f16x2 && to != Type::bf16x2)
    d.fail("rounding .rz to this type is not modelled");
  const bool narrows = isFloat(to) && isFloat(from) && bitsOf(to) < bitsOf(from);
  if (how.empty() && (narrows || isFloat(to) != isFloat(from)))
    d.fail("the conversion needs a rounding");
}

void decodeCvt(Decoding &d) {
  const std::string_view how = d.takeOneOf({"rn", "rz", "rni", "rzi", "rmi", "rpi", "rna"});
  d.out.flags[rounding] = how == "rz"    ? towardZero
                          : how == "rni" ? integerNearest
                          : how == "rzi" ? integerZero
                          : how == "rmi" ? integerDown
                          : how == "rpi" ? integerUp
                          : how == "rna" ? awayTf32
                                         : nearest;
  d.out.flags[options] =
      (d.take("ftz") ? flushes : 0U) | (d.take("sat") ? saturates : 0U) | (d.take("relu") ? rectifies : 0U);
  const Type to = d.takeType(), from = d.takeType();
  checkRounding(d, how, to, from);
  const bool pair = to == Type::f16x2 || to == Type::bf16x2;
  d.out.flags[sourceType] = static_cast<std::uint32_t>(from);
  d.out.flags[targetType] = static_cast<std::uint32_t>(to == Type::f16x2    ? Type::f16
                                                       : to == Type::bf16x2 ? Type::bf16
                                                                            : to);
  d.expectOperands(pair ? 3 : 2);
  if (pair) {
    if (from != Type::f32)
      d.failType(from);
    d.target(d.operand(0), to);
    d.source(d.operand(1), from);
    d.source(d.operand(2), from);
    return d.emit(&pairs);
  }
  d.wideTarget(d.operand(0), to);
  d.wideSource(d.operand(1), from);
  if (isFloat(to))
    return d.emit(isFloat(from) ? &floats : &integersToFloats);
  d.emit(isFloat(from) ? &floatsToIntegers : &integers);
}

} // namespace

std::span<const Opcode> convertOpcodes() {
  static constexpr Opcode opcodes[] = {{"cvt", &decodeCvt}};
  return opcodes;
}

} // namespace kiln::ptx
