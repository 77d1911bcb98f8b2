// SPDX-License-Identifier: Apache-2.0
//
// Handlers of lane-wise instructions. All 32 lanes are computed, which vectorises; put() writes only the executing
// lanes. An operation is a type with a static apply(), which must accept any value.
#pragma once

#include "NumberFormats.h"
#include "Warp.h"

namespace kiln::ptx {

template <class Function> void eachLane(std::uint32_t lanes, Function function) {
  for (; lanes; lanes &= lanes - 1)
    function(static_cast<unsigned>(std::countr_zero(lanes)));
}

template <class T, class Op> void unary(Warp &warp, const Instruction &i) {
  const T *a = warp.read<T>(i.operands[1]);
  T result[warpSize];
  for (unsigned lane = 0; lane < warpSize; ++lane)
    result[lane] = Op::apply(a[lane]);
  warp.put(i.operands[0], result);
}

template <class T, class Op> void binary(Warp &warp, const Instruction &i) {
  const T *a = warp.read<T>(i.operands[1]), *b = warp.read<T>(i.operands[2]);
  T result[warpSize];
  for (unsigned lane = 0; lane < warpSize; ++lane)
    result[lane] = Op::apply(a[lane], b[lane]);
  warp.put(i.operands[0], result);
}

template <class T, class Op> void ternary(Warp &warp, const Instruction &i) {
  const T *a = warp.read<T>(i.operands[1]), *b = warp.read<T>(i.operands[2]), *c = warp.read<T>(i.operands[3]);
  T result[warpSize];
  for (unsigned lane = 0; lane < warpSize; ++lane)
    result[lane] = Op::apply(a[lane], b[lane], c[lane]);
  warp.put(i.operands[0], result);
}

/// 16-bit floats: computed in f64 and rounded once.
struct Half {
  static double decode(std::uint16_t bits) { return fromF16(bits); }
  static std::uint16_t encode(double value) { return toF16(value); }
};
struct Brain {
  static double decode(std::uint16_t bits) { return fromBf16(bits); }
  static std::uint16_t encode(double value) { return toBf16(value); }
};

/// Applies an f64 operation to a 16-bit float.
template <class Format, class Op> struct Short {
  template <class... Bits> static std::uint16_t apply(Bits... bits) {
    return Format::encode(Op::apply(Format::decode(bits)...));
  }
};
/// Applies a 16-bit operation to two of them.
template <class Op> struct Pair {
  template <class... Bits> static std::uint32_t apply(Bits... bits) {
    const std::uint32_t low = Op::apply(static_cast<std::uint16_t>(bits)...);
    const std::uint32_t high = Op::apply(static_cast<std::uint16_t>(bits >> 16)...);
    return low | high << 16;
  }
};
/// Applies an f32 operation with .ftz.
template <class Op> struct Ftz {
  template <class... Values> static float apply(Values... values) { return flushed(Op::apply(flushed(values)...)); }
};

/// Returns the handler for an integer type, or null if it is none of 16, 32 or 64 bits.
template <template <class, class> class Shape, class Op> Handler forIntegers(Type type) {
  switch (type) {
  case Type::u16:
  case Type::b16:
    return Shape<std::uint16_t, Op>::run;
  case Type::u32:
  case Type::b32:
    return Shape<std::uint32_t, Op>::run;
  case Type::u64:
  case Type::b64:
    return Shape<std::uint64_t, Op>::run;
  case Type::s16:
    return Shape<std::int16_t, Op>::run;
  case Type::s32:
    return Shape<std::int32_t, Op>::run;
  case Type::s64:
    return Shape<std::int64_t, Op>::run;
  default:
    return nullptr;
  }
}
template <class T, class Op> struct Unary {
  static constexpr Handler run = &unary<T, Op>;
};
template <class T, class Op> struct Binary {
  static constexpr Handler run = &binary<T, Op>;
};
template <class T, class Op> struct Ternary {
  static constexpr Handler run = &ternary<T, Op>;
};

/// Returns the handler for a floating-point type, or null if it is none.
template <template <class, class> class Shape, class Op> Handler forFloats(Type type, bool ftz) {
  switch (type) {
  case Type::f32:
    return ftz ? Shape<float, Ftz<Op>>::run : Shape<float, Op>::run;
  case Type::f64:
    return Shape<double, Op>::run;
  case Type::f16:
    return Shape<std::uint16_t, Short<Half, Op>>::run;
  case Type::bf16:
    return Shape<std::uint16_t, Short<Brain, Op>>::run;
  case Type::f16x2:
    return Shape<std::uint32_t, Pair<Short<Half, Op>>>::run;
  case Type::bf16x2:
    return Shape<std::uint32_t, Pair<Short<Brain, Op>>>::run;
  default:
    return nullptr;
  }
}

} // namespace kiln::ptx
