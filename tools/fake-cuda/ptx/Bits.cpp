// SPDX-License-Identifier: Apache-2.0
//
// Bit operations: logic, shifts, bit fields, counts, byte permutations.
#include <algorithm>
#include <bit>
#include <type_traits>

#include "Decoder.h"
#include "Lanes.h"

namespace kiln::ptx {
namespace {

struct And {
  template <class T> static T apply(T a, T b) { return static_cast<T>(a & b); }
};
struct Or {
  template <class T> static T apply(T a, T b) { return static_cast<T>(a | b); }
};
struct Xor {
  template <class T> static T apply(T a, T b) { return static_cast<T>(a ^ b); }
};
struct Not {
  template <class T> static T apply(T a) { return static_cast<T>(~a); }
};

template <class Op> void predicateBinary(Warp &warp, const Instruction &i) {
  const std::uint32_t a = warp.readPredicate(i.operands[1]), b = warp.readPredicate(i.operands[2]);
  warp.writePredicate(i.operands[0], Op::apply(a, b));
}
void predicateNot(Warp &warp, const Instruction &i) {
  warp.writePredicate(i.operands[0], ~warp.readPredicate(i.operands[1]));
}

template <class Op> void decodeLogic(Decoding &d) {
  const Type type = d.takeType();
  d.expectOperands(3);
  if (type == Type::pred) {
    d.predicateTarget(d.operand(0));
    d.predicateSource(d.operand(1));
    d.predicateSource(d.operand(2));
    return d.emit(&predicateBinary<Op>);
  }
  const Handler handler = isInteger(type) ? forIntegers<Binary, Op>(type) : nullptr;
  if (!handler)
    d.failType(type);
  d.target(d.operand(0), type);
  d.source(d.operand(1), type);
  d.source(d.operand(2), type);
  d.emit(handler);
}

void decodeNot(Decoding &d) {
  const Type type = d.takeType();
  d.expectOperands(2);
  if (type == Type::pred) {
    d.predicateTarget(d.operand(0));
    d.predicateSource(d.operand(1));
    return d.emit(&predicateNot);
  }
  const Handler handler = forIntegers<Unary, Not>(type);
  if (!handler)
    d.failType(type);
  d.target(d.operand(0), type);
  d.source(d.operand(1), type);
  d.emit(handler);
}

/// Shifts by amounts above the width shift out all bits.
template <class T, bool left> void shift(Warp &warp, const Instruction &i) {
  const T *a = warp.read<T>(i.operands[1]);
  const auto *amounts = warp.read<std::uint32_t>(i.operands[2]);
  constexpr unsigned bits = 8 * sizeof(T);
  T result[warpSize];
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    const std::uint32_t amount = amounts[lane];
    if (left)
      result[lane] = amount < bits ? static_cast<T>(static_cast<std::uint64_t>(a[lane]) << amount) : T{0};
    else
      result[lane] = static_cast<T>(a[lane] >> (amount < bits ? amount : bits - 1) >> (amount < bits ? 0 : 1));
  }
  warp.put(i.operands[0], result);
}

template <bool left> void decodeShift(Decoding &d) {
  const Type type = d.takeType();
  Handler handler = nullptr;
  switch (type) {
  case Type::b16:
  case Type::u16:
    handler = &shift<std::uint16_t, left>;
    break;
  case Type::b32:
  case Type::u32:
    handler = &shift<std::uint32_t, left>;
    break;
  case Type::b64:
  case Type::u64:
    handler = &shift<std::uint64_t, left>;
    break;
  case Type::s16:
    handler = left ? nullptr : &shift<std::int16_t, left>;
    break;
  case Type::s32:
    handler = left ? nullptr : &shift<std::int32_t, left>;
    break;
  case Type::s64:
    handler = left ? nullptr : &shift<std::int64_t, left>;
    break;
  default:
    break;
  }
  if (!handler)
    d.failType(type);
  d.expectOperands(3);
  d.target(d.operand(0), type);
  d.source(d.operand(1), type);
  d.source(d.operand(2), Type::u32);
  d.emit(handler);
}

/// shf: shifts a 64-bit number in two registers, and returns one of them. flags: left, wrap.
void funnel(Warp &warp, const Instruction &i) {
  const auto *low = warp.read<std::uint32_t>(i.operands[1]), *high = warp.read<std::uint32_t>(i.operands[2]);
  const auto *amounts = warp.read<std::uint32_t>(i.operands[3]);
  std::uint32_t result[warpSize];
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    const std::uint64_t both = static_cast<std::uint64_t>(high[lane]) << 32 | low[lane];
    const unsigned amount = i.flags[1] ? amounts[lane] & 31 : std::min(amounts[lane], 32U);
    result[lane] = static_cast<std::uint32_t>(i.flags[0] ? both >> (32 - amount) : both >> amount);
  }
  warp.put(i.operands[0], result);
}

void decodeFunnel(Decoding &d) {
  d.out.flags[0] = d.takeOneOf({"l", "r"}) == "l";
  d.out.flags[1] = d.takeOneOf({"wrap", "clamp"}) == "wrap";
  const Type type = d.takeType();
  d.expectOperands(4);
  d.target(d.operand(0), type);
  for (unsigned i = 1; i < 4; ++i)
    d.source(d.operand(i), Type::b32);
  d.emit(&funnel);
}

/// bfe: extracts a bit field, sign-extended if the type is signed.
template <class T> void extract(Warp &warp, const Instruction &i) {
  using Unsigned = std::make_unsigned_t<T>;
  constexpr unsigned bits = 8 * sizeof(T);
  const T *a = warp.read<T>(i.operands[1]);
  const auto *from = warp.read<std::uint32_t>(i.operands[2]), *lengths = warp.read<std::uint32_t>(i.operands[3]);
  T result[warpSize];
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    const unsigned first = from[lane] & 255, length = lengths[lane] & 255;
    const unsigned last = std::min(first + length, bits) - (length ? 1 : 0);
    const bool sign = std::is_signed_v<T> && length && static_cast<Unsigned>(a[lane]) >> std::min(last, bits - 1) & 1;
    Unsigned field = first < bits ? static_cast<Unsigned>(a[lane]) >> first : 0;
    const unsigned kept = first < bits ? std::min(length, bits - first) : 0;
    if (kept < bits) {
      const Unsigned mask = (Unsigned{1} << kept) - 1;
      field = (field & mask) | (sign ? ~mask : 0);
    }
    result[lane] = static_cast<T>(field);
  }
  warp.put(i.operands[0], result);
}

void decodeExtract(Decoding &d) {
  const Type type = d.takeType();
  const Handler handler = type == Type::u32   ? &extract<std::uint32_t>
                          : type == Type::s32 ? &extract<std::int32_t>
                          : type == Type::u64 ? &extract<std::uint64_t>
                          : type == Type::s64 ? &extract<std::int64_t>
                                              : nullptr;
  if (!handler)
    d.failType(type);
  d.expectOperands(4);
  d.target(d.operand(0), type);
  d.source(d.operand(1), type);
  d.source(d.operand(2), Type::u32);
  d.source(d.operand(3), Type::u32);
  d.emit(handler);
}

/// bfi: inserts a bit field of the first operand into the second one.
template <class T> void insert(Warp &warp, const Instruction &i) {
  constexpr unsigned bits = 8 * sizeof(T);
  const T *a = warp.read<T>(i.operands[1]), *b = warp.read<T>(i.operands[2]);
  const auto *from = warp.read<std::uint32_t>(i.operands[3]), *lengths = warp.read<std::uint32_t>(i.operands[4]);
  T result[warpSize];
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    const unsigned first = from[lane] & 255;
    const unsigned length = first < bits ? std::min(lengths[lane] & 255, bits - first) : 0;
    const T ones = length == bits ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << length) - 1);
    const T mask = first < bits ? static_cast<T>(ones << first) : T{0};
    result[lane] = static_cast<T>((b[lane] & ~mask) | ((first < bits ? a[lane] << first : 0) & mask));
  }
  warp.put(i.operands[0], result);
}

void decodeInsert(Decoding &d) {
  const Type type = d.takeType();
  if (type != Type::b32 && type != Type::b64)
    d.failType(type);
  d.expectOperands(5);
  d.target(d.operand(0), type);
  d.source(d.operand(1), type);
  d.source(d.operand(2), type);
  d.source(d.operand(3), Type::u32);
  d.source(d.operand(4), Type::u32);
  d.emit(type == Type::b32 ? &insert<std::uint32_t> : &insert<std::uint64_t>);
}

/// popc, clz: counts bits; the result has 32 bits.
template <class T, int (*count)(T) noexcept> void counted(Warp &warp, const Instruction &i) {
  const T *a = warp.read<T>(i.operands[1]);
  std::uint32_t result[warpSize];
  for (unsigned lane = 0; lane < warpSize; ++lane)
    result[lane] = static_cast<std::uint32_t>(count(a[lane]));
  warp.put(i.operands[0], result);
}
template <class T> int ones(T value) noexcept { return std::popcount(value); }
template <class T> int zeros(T value) noexcept { return std::countl_zero(value); }

template <Handler of32, Handler of64> void decodeCount(Decoding &d) {
  const Type type = d.takeType();
  if (type != Type::b32 && type != Type::b64)
    d.failType(type);
  d.expectOperands(2);
  d.target(d.operand(0), Type::u32);
  d.source(d.operand(1), type);
  d.emit(type == Type::b32 ? of32 : of64);
}

struct Reverse {
  template <class T> static T apply(T a) {
    T result = 0;
    for (unsigned bit = 0; bit < 8 * sizeof(T); ++bit)
      result = static_cast<T>(result << 1 | (a >> bit & 1));
    return result;
  }
};

void decodeReverse(Decoding &d) {
  const Type type = d.takeType();
  if (type != Type::b32 && type != Type::b64)
    d.failType(type);
  d.expectOperands(2);
  d.target(d.operand(0), type);
  d.source(d.operand(1), type);
  d.emit(type == Type::b32 ? &unary<std::uint32_t, Reverse> : &unary<std::uint64_t, Reverse>);
}

/// Selects four bytes out of eight; the highest bit of a selector replicates the byte's sign.
struct Permute {
  static std::uint32_t apply(std::uint32_t a, std::uint32_t b, std::uint32_t selectors) {
    const std::uint64_t both = static_cast<std::uint64_t>(b) << 32 | a;
    std::uint32_t result = 0;
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned selector = selectors >> 4 * i & 15;
      auto byte = static_cast<std::uint8_t>(both >> 8 * (selector & 7));
      if (selector & 8)
        byte = byte & 0x80 ? 0xff : 0;
      result |= static_cast<std::uint32_t>(byte) << 8 * i;
    }
    return result;
  }
};

/// lop3: looks up each result bit by three source bits. flags: the table.
void lookUpBits(Warp &warp, const Instruction &i) {
  const auto *a = warp.read<std::uint32_t>(i.operands[1]), *b = warp.read<std::uint32_t>(i.operands[2]);
  const auto *c = warp.read<std::uint32_t>(i.operands[3]);
  std::uint32_t result[warpSize] = {};
  for (unsigned row = 0; row < 8; ++row)
    if (i.flags[0] >> row & 1)
      for (unsigned lane = 0; lane < warpSize; ++lane)
        result[lane] |=
            (row & 4 ? a[lane] : ~a[lane]) & (row & 2 ? b[lane] : ~b[lane]) & (row & 1 ? c[lane] : ~c[lane]);
  warp.put(i.operands[0], result);
}

template <Handler handler, bool table> void decodeThree(Decoding &d) {
  if (d.takeType() != Type::b32)
    d.failType(Type::b64);
  d.expectOperands(table ? 5 : 4);
  d.target(d.operand(0), Type::b32);
  for (unsigned i = 1; i < 4; ++i)
    d.source(d.operand(i), Type::b32);
  if (table)
    d.out.flags[0] = static_cast<std::uint32_t>(d.operand(4).bits);
  d.emit(handler);
}

} // namespace

std::span<const Opcode> bitOpcodes() {
  static constexpr Opcode opcodes[] = {
      {"and", &decodeLogic<And>},
      {"bfe", &decodeExtract},
      {"bfi", &decodeInsert},
      {"brev", &decodeReverse},
      {"clz", &decodeCount<&counted<std::uint32_t, &zeros>, &counted<std::uint64_t, &zeros>>},
      {"lop3", &decodeThree<&lookUpBits, true>},
      {"not", &decodeNot},
      {"or", &decodeLogic<Or>},
      {"popc", &decodeCount<&counted<std::uint32_t, &ones>, &counted<std::uint64_t, &ones>>},
      {"prmt", &decodeThree<&ternary<std::uint32_t, Permute>, false>},
      {"shf", &decodeFunnel},
      {"shl", &decodeShift<true>},
      {"shr", &decodeShift<false>},
      {"xor", &decodeLogic<Xor>}};
  return opcodes;
}

} // namespace kiln::ptx
