// SPDX-License-Identifier: Apache-2.0
//
// atom and red. Lanes are executed in order.
#include <algorithm>
#include <type_traits>

#include "Decoder.h"
#include "Lanes.h"

namespace kiln::ptx {
namespace {

enum class Update : std::uint32_t {
  add,
  min,
  max,
  conjunction,
  disjunction,
  exclusive,
  exchange,
  increase,
  decrease,
  compare
};

template <class T> T updated(Update update, T old, T value, T swap) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    switch (update) {
    case Update::add:
      return static_cast<T>(static_cast<Unsigned>(old) + static_cast<Unsigned>(value));
    case Update::conjunction:
      return static_cast<T>(old & value);
    case Update::disjunction:
      return static_cast<T>(old | value);
    case Update::exclusive:
      return static_cast<T>(old ^ value);
    case Update::increase:
      return old >= value ? T{0} : static_cast<T>(old + 1);
    case Update::decrease:
      return old == 0 || old > value ? value : static_cast<T>(old - 1);
    default:
      break;
    }
  }
  switch (update) {
  case Update::add:
    return old + value;
  case Update::min:
    return std::min(old, value);
  case Update::max:
    return std::max(old, value);
  case Update::compare:
    return old == value ? swap : old;
  default:
    return value;
  }
}

/// Adds a pair of 16-bit floats, or one: `brain` selects bf16, the width of T the count.
template <class T> T addedShort(T old, T value, bool brain) {
  T result = 0;
  for (unsigned part = 0; part < sizeof(T) / 2; ++part) {
    const auto a = static_cast<std::uint16_t>(old >> 16 * part), b = static_cast<std::uint16_t>(value >> 16 * part);
    const std::uint16_t sum = brain ? toBf16(static_cast<double>(fromBf16(a)) + fromBf16(b))
                                    : toF16(static_cast<double>(fromF16(a)) + fromF16(b));
    result = static_cast<T>(result | static_cast<T>(sum) << 16 * part);
  }
  return result;
}

/// Operands: the result or nothing, the address, the value, the value to swap in. flags: the update, whether the format
/// is a 16-bit float, which one.
template <class T, bool halfFloats> void atomic(Warp &warp, const Instruction &i) {
  const auto update = static_cast<Update>(i.flags[0]);
  const T *values = warp.read<T>(i.operands[2]);
  const T *swaps = i.count > 3 ? warp.read<T>(i.operands[3]) : values;
  T olds[warpSize] = {};
  eachLane(warp.executing, [&](unsigned lane) {
    const Bytes found =
        warp.reach(i.space, warp.address(i.operands[1], i, lane), sizeof(T), sizeof(T), Access::atomic, lane);
    T old;
    std::memcpy(&old, found.data, sizeof old);
    T fresh;
    if constexpr (halfFloats)
      fresh = addedShort(old, values[lane], i.flags[2] != 0);
    else
      fresh = updated(update, old, values[lane], swaps[lane]);
    std::memcpy(found.data, &fresh, sizeof fresh);
    olds[lane] = old;
  });
  warp.put(i.operands[0], olds);
}

Handler handlerOf(Type type) {
  switch (type) {
  case Type::b32:
  case Type::u32:
    return &atomic<std::uint32_t, false>;
  case Type::s32:
    return &atomic<std::int32_t, false>;
  case Type::b64:
  case Type::u64:
    return &atomic<std::uint64_t, false>;
  case Type::s64:
    return &atomic<std::int64_t, false>;
  case Type::b16:
    return &atomic<std::uint16_t, false>;
  case Type::f32:
    return &atomic<float, false>;
  case Type::f64:
    return &atomic<double, false>;
  case Type::f16:
  case Type::bf16:
    return &atomic<std::uint16_t, true>;
  case Type::f16x2:
  case Type::bf16x2:
    return &atomic<std::uint32_t, true>;
  default:
    return nullptr;
  }
}

template <bool returns> void decodeAtomic(Decoding &d) {
  constexpr std::pair<std::string_view, Update> updates[] = {
      {"add", Update::add},        {"min", Update::min},       {"max", Update::max},       {"and", Update::conjunction},
      {"or", Update::disjunction}, {"xor", Update::exclusive}, {"exch", Update::exchange}, {"inc", Update::increase},
      {"dec", Update::decrease},   {"cas", Update::compare}};
  d.takeOneOf({"relaxed", "acquire", "release", "acq_rel"});
  d.takeOneOf({"cta", "cluster", "gpu", "sys"});
  d.take("noftz");
  const std::string_view space = d.takeOneOf({"global", "shared", "shared::cta", "shared::cluster"});
  d.out.space = space.empty() ? Space::generic : space == "global" ? Space::global : Space::shared;
  Update update = Update::add;
  bool known = false;
  for (const auto &[name, value] : updates)
    if (!known && d.take(name)) {
      update = value;
      known = true;
    }
  if (!known)
    d.fail("the update is not modelled");
  const Type type = d.takeType();
  const Handler handler = handlerOf(type);
  const bool halfFloat = bitsOf(type) == 16 || type == Type::f16x2 || type == Type::bf16x2;
  if (!handler || (halfFloat && type != Type::b16 && update != Update::add))
    d.failType(type);
  d.out.flags[0] = static_cast<std::uint32_t>(update);
  d.out.flags[2] = type == Type::bf16 || type == Type::bf16x2;
  const unsigned first = returns ? 1 : 0;
  d.expectOperands(first + (update == Update::compare ? 3 : 2));
  d.target(returns ? d.operand(0) : d.nowhere(), type);
  d.address(d.operand(first));
  d.source(d.operand(first + 1), type);
  if (update == Update::compare)
    d.source(d.operand(first + 2), type);
  d.emit(handler);
}

} // namespace

std::span<const Opcode> atomicOpcodes() {
  static constexpr Opcode opcodes[] = {{"atom", &decodeAtomic<true>}, {"red", &decodeAtomic<false>}};
  return opcodes;
}

} // namespace kiln::ptx
