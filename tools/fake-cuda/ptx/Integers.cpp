// SPDX-License-Identifier: Apache-2.0
//
// Integer arithmetic. It wraps, and division by zero yields all ones, as on the hardware.
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "Decoder.h"
#include "Lanes.h"

namespace kiln::ptx {
namespace {

/// Wrapping arithmetic is unsigned, and has at least 32 bits.
template <class T> using Wide = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
template <class T> Wide<T> wide(T value) { return static_cast<Wide<T>>(value); }

struct Add {
  template <class T> static T apply(T a, T b) { return static_cast<T>(wide(a) + wide(b)); }
};
struct AddSaturating {
  static std::int32_t apply(std::int32_t a, std::int32_t b) {
    const std::int64_t sum = static_cast<std::int64_t>(a) + b;
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(sum, INT32_MIN, INT32_MAX));
  }
};
struct Sub {
  template <class T> static T apply(T a, T b) { return static_cast<T>(wide(a) - wide(b)); }
};
struct SubSaturating {
  static std::int32_t apply(std::int32_t a, std::int32_t b) {
    const std::int64_t difference = static_cast<std::int64_t>(a) - b;
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(difference, INT32_MIN, INT32_MAX));
  }
};
struct MulLow {
  template <class T> static T apply(T a, T b) { return static_cast<T>(wide(a) * wide(b)); }
};
struct MulHigh {
  template <class T> static T apply(T a, T b) {
    using Double = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return static_cast<T>((static_cast<Double>(a) * static_cast<Double>(b)) >> (8 * sizeof(T)));
  }
};
template <class Multiply> struct Mad {
  template <class T> static T apply(T a, T b, T c) { return Add::apply(Multiply::apply(a, b), c); }
};
struct Div {
  template <class T> static T apply(T a, T b) {
    if (b == 0)
      return static_cast<T>(-1);
    if (std::is_signed_v<T> && b == static_cast<T>(-1))
      return Sub::apply(T{0}, a);
    return static_cast<T>(a / b);
  }
};
struct Rem {
  template <class T> static T apply(T a, T b) {
    if (b == 0)
      return a;
    if (std::is_signed_v<T> && b == static_cast<T>(-1))
      return 0;
    return static_cast<T>(a % b);
  }
};
struct Min {
  template <class T> static T apply(T a, T b) { return a < b ? a : b; }
};
struct Max {
  template <class T> static T apply(T a, T b) { return a < b ? b : a; }
};
/// For s32: negative results become 0.
template <class Op> struct Rectified {
  static std::int32_t apply(std::int32_t a, std::int32_t b) { return std::max(Op::apply(a, b), 0); }
};
struct Neg {
  template <class T> static T apply(T a) { return Sub::apply(T{0}, a); }
};
struct Abs {
  template <class T> static T apply(T a) { return a < 0 ? Sub::apply(T{0}, a) : a; }
};

/// The result, and the third operand if there is one, have twice the width.
template <class T, class Result, bool adds> void mulWide(Warp &warp, const Instruction &i) {
  const T *a = warp.read<T>(i.operands[1]), *b = warp.read<T>(i.operands[2]);
  const Result *c = adds ? warp.read<Result>(i.operands[3]) : nullptr;
  Result result[warpSize];
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    const Result product = static_cast<Result>(static_cast<Result>(a[lane]) * static_cast<Result>(b[lane]));
    result[lane] = adds ? Add::apply(product, c[lane]) : product;
  }
  warp.put(i.operands[0], result);
}

template <bool adds> void decodeWide(Decoding &d, Type type) {
  struct Row {
    Type type, result;
    Handler handler;
  };
  static constexpr Row rows[] = {{Type::u16, Type::u32, &mulWide<std::uint16_t, std::uint32_t, adds>},
                                 {Type::s16, Type::s32, &mulWide<std::int16_t, std::int32_t, adds>},
                                 {Type::u32, Type::u64, &mulWide<std::uint32_t, std::uint64_t, adds>},
                                 {Type::s32, Type::s64, &mulWide<std::int32_t, std::int64_t, adds>}};
  for (const Row &row : rows) {
    if (row.type != type)
      continue;
    d.target(d.operand(0), row.result);
    d.source(d.operand(1), type);
    d.source(d.operand(2), type);
    if (adds)
      d.source(d.operand(3), row.result);
    return d.emit(row.handler);
  }
  d.failType(type);
}

template <class Op, class Saturating> void decodeSum(Decoding &d) {
  const bool saturates = d.take("sat");
  const Type type = d.takeType();
  if (saturates && type != Type::s32)
    d.failType(type);
  d.emitUniform(type, 2, saturates ? &binary<std::int32_t, Saturating> : forIntegers<Binary, Op>(type));
}
template <class Op> void decodeExtreme(Decoding &d) {
  const bool rectifies = d.take("relu");
  const Type type = d.takeType();
  if (rectifies && type != Type::s32)
    d.failType(type);
  d.emitUniform(type, 2, rectifies ? &binary<std::int32_t, Rectified<Op>> : forIntegers<Binary, Op>(type));
}
template <class Op> void decodeBinary(Decoding &d) {
  const Type type = d.takeType();
  d.emitUniform(type, 2, forIntegers<Binary, Op>(type));
}
template <class Op> void decodeUnary(Decoding &d) {
  const Type type = d.takeType();
  d.emitUniform(type, 1, isSigned(type) ? forIntegers<Unary, Op>(type) : nullptr);
}

void decodeMul(Decoding &d) {
  const std::string_view part = d.takeOneOf({"lo", "hi", "wide"});
  const Type type = d.takeType();
  if (part == "wide")
    return decodeWide<false>(d, type);
  d.emitUniform(type, 2,
                part == "lo"   ? forIntegers<Binary, MulLow>(type)
                : part == "hi" ? forIntegers<Binary, MulHigh>(type)
                               : nullptr);
}

void decodeMad(Decoding &d) {
  const std::string_view part = d.takeOneOf({"lo", "hi", "wide"});
  const Type type = d.takeType();
  if (part == "wide")
    return decodeWide<true>(d, type);
  d.emitUniform(type, 3,
                part == "lo"   ? forIntegers<Ternary, Mad<MulLow>>(type)
                : part == "hi" ? forIntegers<Ternary, Mad<MulHigh>>(type)
                               : nullptr);
}

} // namespace

/// Decodes the instructions that support integers and floats, by type.
void decodeIntegerOrFloat(Decoding &d) {
  bool floats = false;
  for (const std::string &modifier : d.modifiers())
    floats |= isFloat(typeOf(modifier));
  const std::string_view name = d.statement.opcode;
  for (const Opcode &opcode : floats ? floatArithmetic() : integerArithmetic())
    if (opcode.name == name)
      return opcode.decode(d);
  d.fail("the instruction is not for this type");
}

std::span<const Opcode> integerArithmetic() {
  static constexpr Opcode opcodes[] = {{"abs", &decodeUnary<Abs>},   {"add", &decodeSum<Add, AddSaturating>},
                                       {"div", &decodeBinary<Div>},  {"mad", &decodeMad},
                                       {"max", &decodeExtreme<Max>}, {"min", &decodeExtreme<Min>},
                                       {"mul", &decodeMul},          {"neg", &decodeUnary<Neg>},
                                       {"rem", &decodeBinary<Rem>},  {"sub", &decodeSum<Sub, SubSaturating>}};
  return opcodes;
}

std::span<const Opcode> integerOpcodes() {
  static constexpr Opcode opcodes[] = {{"abs", &decodeIntegerOrFloat}, {"add", &decodeIntegerOrFloat},
                                       {"div", &decodeIntegerOrFloat}, {"mad", &decodeIntegerOrFloat},
                                       {"max", &decodeIntegerOrFloat}, {"min", &decodeIntegerOrFloat},
                                       {"mul", &decodeIntegerOrFloat}, {"neg", &decodeIntegerOrFloat},
                                       {"rem", &decodeIntegerOrFloat}, {"sub", &decodeIntegerOrFloat}};
  return opcodes;
}

} // namespace kiln::ptx
