// SPDX-License-Identifier: Apache-2.0
//
// Floating-point arithmetic, rounded to nearest. That of 16-bit floats is computed in f64 and rounded once, which is
// exact for sums and products, and for fma off by at most one ulp where f64 has to round.
#include <cmath>
#include <type_traits>

#include "Decoder.h"
#include "Lanes.h"

namespace kiln::ptx {
namespace {

struct Add {
  template <class T> static T apply(T a, T b) { return a + b; }
};
struct Sub {
  template <class T> static T apply(T a, T b) { return a - b; }
};
struct Mul {
  template <class T> static T apply(T a, T b) { return a * b; }
};
struct Div {
  template <class T> static T apply(T a, T b) { return a / b; }
};
struct Fma {
  template <class T> static T apply(T a, T b, T c) { return std::fma(a, b, c); }
};
struct FmaRelu {
  template <class T> static T apply(T a, T b, T c) { return std::fmax(std::fma(a, b, c), T{0}); }
};
/// A number is preferred to NaN, and -0 is less than +0.
struct Min {
  template <class T> static T apply(T a, T b) {
    if (std::isnan(a) || std::isnan(b))
      return std::isnan(a) ? b : a;
    return a < b || (a == b && std::signbit(a)) ? a : b;
  }
};
struct Max {
  template <class T> static T apply(T a, T b) {
    if (std::isnan(a) || std::isnan(b))
      return std::isnan(a) ? b : a;
    return b < a || (a == b && !std::signbit(a)) ? a : b;
  }
};
/// .NaN: propagates NaN.
template <class Op> struct Nan {
  template <class T> static T apply(T a, T b) {
    return std::isnan(a) || std::isnan(b) ? static_cast<T>(NAN) : Op::apply(a, b);
  }
};
/// .xorsign.abs: applies to the magnitudes, with the product's sign.
template <class Op> struct XorSign {
  template <class T> static T apply(T a, T b) {
    const T magnitude = Op::apply(std::fabs(a), std::fabs(b));
    return std::signbit(a) != std::signbit(b) ? -magnitude : magnitude;
  }
};
struct Neg {
  template <class T> static T apply(T a) { return -a; }
};
struct Abs {
  template <class T> static T apply(T a) { return std::fabs(a); }
};
/// PTX has the sign operand first.
struct CopySign {
  template <class T> static T apply(T sign, T magnitude) { return std::copysign(magnitude, sign); }
};

template <class Op> void decodeBinary(Decoding &d) {
  d.take("rn");
  const bool ftz = d.take("ftz");
  const Type type = d.takeType();
  d.emitUniform(type, 2, forFloats<Binary, Op>(type, ftz));
}

void decodeDiv(Decoding &d) {
  if (d.takeOneOf({"rn", "approx", "full"}).empty())
    d.fail("div needs .rn, .approx or .full");
  decodeBinary<Div>(d);
}

template <class Op> void decodeUnary(Decoding &d) {
  const bool ftz = d.take("ftz");
  const Type type = d.takeType();
  d.emitUniform(type, 1, forFloats<Unary, Op>(type, ftz));
}

#ifdef __x86_64__
/// fma.rn.f32 by the CPU's instruction: std::fma calls a function for each lane.
__attribute__((target("avx2,fma"))) void fmaByInstruction(Warp &warp, const Instruction &i) {
  const auto *a = warp.read<float>(i.operands[1]), *b = warp.read<float>(i.operands[2]),
             *c = warp.read<float>(i.operands[3]);
  float result[warpSize];
  for (unsigned lane = 0; lane < warpSize; ++lane)
    result[lane] = __builtin_fmaf(a[lane], b[lane], c[lane]);
  warp.put(i.operands[0], result);
}
#endif

Handler fmaOf(Type type, bool ftz) {
#ifdef __x86_64__
  if (type == Type::f32 && !ftz && __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2"))
    return &fmaByInstruction;
#endif
  return forFloats<Ternary, Fma>(type, ftz);
}

void decodeFma(Decoding &d) {
  if (!d.take("rn"))
    d.fail("rounding other than .rn is not modelled");
  const bool ftz = d.take("ftz"), relu = d.take("relu");
  const Type type = d.takeType();
  d.emitUniform(type, 3, relu ? forFloats<Ternary, FmaRelu>(type, ftz) : fmaOf(type, ftz));
}

template <class Op> void decodeLeast(Decoding &d) {
  const bool ftz = d.take("ftz"), nan = d.take("NaN"), sign = d.take("xorsign");
  if (sign && !d.take("abs"))
    d.fail(".xorsign needs .abs");
  const Type type = d.takeType();
  d.emitUniform(type, 2,
                sign && nan ? forFloats<Binary, XorSign<Nan<Op>>>(type, ftz)
                : sign      ? forFloats<Binary, XorSign<Op>>(type, ftz)
                : nan       ? forFloats<Binary, Nan<Op>>(type, ftz)
                            : forFloats<Binary, Op>(type, ftz));
}

void decodeCopySign(Decoding &d) {
  const Type type = d.takeType();
  if (type != Type::f32 && type != Type::f64)
    d.failType(type);
  d.emitUniform(type, 2, forFloats<Binary, CopySign>(type, false));
}

} // namespace

std::span<const Opcode> floatArithmetic() {
  static constexpr Opcode opcodes[] = {
      {"abs", &decodeUnary<Abs>},  {"add", &decodeBinary<Add>}, {"div", &decodeDiv},
      {"mad", &decodeFma},         {"max", &decodeLeast<Max>},  {"min", &decodeLeast<Min>},
      {"mul", &decodeBinary<Mul>}, {"neg", &decodeUnary<Neg>},  {"sub", &decodeBinary<Sub>}};
  return opcodes;
}

std::span<const Opcode> floatOpcodes() {
  static constexpr Opcode opcodes[] = {{"copysign", &decodeCopySign}, {"fma", &decodeFma}};
  return opcodes;
}

} // namespace kiln::ptx
