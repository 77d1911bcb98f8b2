// SPDX-License-Identifier: Apache-2.0
//
// ld, st and prefetch: every space, vectors, elements narrower than the registers. Cache hints are parsed and ignored.
#include <fmt/format.h>

#include "Banks.h"
#include "Block.h"
#include "Decoder.h"
#include "Lanes.h"

namespace kiln::ptx {
namespace {

/// Sets a lane of a register to an element of memory, sign-extended if `sign`.
void setElement(Warp &warp, const Operand &operand, unsigned lane, const std::byte *from, unsigned bytes, bool sign) {
  if (bytes == 4 && operand.bits == 32) {
    std::memcpy(warp.write<std::uint32_t>(operand) + lane, from, sizeof(std::uint32_t));
    return;
  }
  std::uint64_t value = 0;
  std::memcpy(&value, from, bytes);
  if (sign && bytes < 8) {
    const unsigned away = 64 - 8 * bytes;
    value = static_cast<std::uint64_t>(static_cast<std::int64_t>(value << away) >> away);
  }
  std::byte *row = warp.write<std::byte>(operand);
  const unsigned width = operand.bits / 8;
  std::memcpy(row + lane * width, &value, width);
}

void countConflicts(Warp &warp, const Instruction &i) {
  if (i.space != Space::shared)
    return;
  BankCount banks(i.bytes * i.elements);
  eachLane(warp.executing, [&](unsigned lane) { banks.add(warp.address(i.operands[i.elements], i, lane)); });
  warp.block.launch.bankConflicts += banks.conflicts();
}

/// Operands: the registers, the address. A lane reads its whole vector before a register changes, because the address
/// may be one of them.
void load(Warp &warp, const Instruction &i) {
  const unsigned bytes = i.bytes * i.elements;
  const Operand &base = i.operands[i.elements];
  const Access access = i.flags[0] ? Access::constant : Access::read;
  countConflicts(warp, i);
  eachLane(warp.executing, [&](unsigned lane) {
    const Bytes found = warp.reach(i.space, warp.address(base, i, lane), bytes, bytes, access, lane);
    for (unsigned element = 0; element < i.elements; ++element)
      setElement(warp, i.operands[element], lane, found.data + element * i.bytes, i.bytes, isSigned(i.type));
  });
}

/// All lanes read the same bytes of the parameters.
void loadParameter(Warp &warp, const Instruction &i) {
  const unsigned bytes = i.bytes * i.elements;
  const std::uint64_t at = warp.read<std::uint64_t>(i.operands[i.elements])[0] + static_cast<std::uint64_t>(i.offset);
  const Bytes found = warp.reach(Space::param, at, bytes, bytes, Access::read, 0);
  for (unsigned element = 0; element < i.elements; ++element)
    eachLane(warp.executing, [&](unsigned lane) {
      setElement(warp, i.operands[element], lane, found.data + element * i.bytes, i.bytes, isSigned(i.type));
    });
}

void store(Warp &warp, const Instruction &i) {
  const unsigned bytes = i.bytes * i.elements;
  const std::byte *rows[8];
  countConflicts(warp, i);
  for (unsigned element = 0; element < i.elements; ++element)
    rows[element] = warp.read<std::byte>(i.operands[element]);
  eachLane(warp.executing, [&](unsigned lane) {
    std::byte values[32];
    for (unsigned element = 0; element < i.elements; ++element) {
      const std::byte *from = rows[element] + lane * (i.operands[element].bits / 8);
      if (i.bytes == 4)
        std::memcpy(values + element * 4, from, 4);
      else
        std::memcpy(values + element * i.bytes, from, i.bytes);
    }
    const Bytes found =
        warp.reach(i.space, warp.address(i.operands[i.elements], i, lane), bytes, bytes, Access::write, lane, values);
    std::memcpy(found.data, values, bytes);
  });
}

Space takeSpace(Decoding &d) {
  constexpr std::pair<std::string_view, Space> spaces[] = {
      {"global", Space::global},          {"shared", Space::shared},     {"shared::cta", Space::shared},
      {"shared::cluster", Space::shared}, {"local", Space::local},       {"param", Space::param},
      {"param::entry", Space::param},     {"param::func", Space::param}, {"const", Space::constant}};
  for (const auto &[name, space] : spaces)
    if (d.take(name))
      return space;
  return Space::generic;
}

/// Ordering modifiers have no effect, because a warp's accesses are visible at once. The flag (.nc): the memory is
/// read-only.
void takeHints(Decoding &d) {
  d.takeOneOf({"weak", "relaxed", "acquire", "release", "volatile", "mmio"});
  d.takeOneOf({"cta", "cluster", "gpu", "sys"});
  d.takeOneOf({"ca", "cg", "cs", "lu", "cv", "wb", "wt"});
  d.out.flags[0] = d.take("nc");
  d.takeOneOf({"L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate"});
  d.takeOneOf({"L2::64B", "L2::128B", "L2::256B"});
  d.take("unified");
}

template <bool loads> void decodeAccess(Decoding &d) {
  d.out.space = takeSpace(d);
  takeHints(d);
  const std::string_view vector = d.takeOneOf({"v2", "v4", "v8"});
  const Type type = d.takeType();
  if (type == Type::pred || bitsOf(type) > 64)
    d.failType(type);
  d.expectOperands(2);
  const unsigned elements = vector.empty() ? 1 : static_cast<unsigned>(vector[1] - '0');
  d.out.type = type;
  d.out.bytes = static_cast<std::uint8_t>(bytesOf(type));
  d.out.elements = static_cast<std::uint8_t>(elements);
  if (d.out.bytes * elements > 32)
    d.failType(type);
  for (const syntax::Operand &part : d.parts(loads ? 0 : 1, elements))
    loads ? d.wideTarget(part, type) : d.wideSource(part, type);
  const Space asked = d.out.space;
  d.address(d.operand(loads ? 1 : 0));
  const bool entry = loads && d.out.space == Space::param && asked == Space::param && d.added(elements).number < 0;
  d.emit(entry ? &loadParameter : loads ? &load : &store);
}

void nothing(Warp &, const Instruction &) {}

/// prefetch, prefetchu, applypriority, discard: hints, which are ignored.
void decodeHint(Decoding &d) {
  d.modifiers().clear();
  d.emit(&nothing);
}

} // namespace

std::span<const Opcode> loadStoreOpcodes() {
  static constexpr Opcode opcodes[] = {{"applypriority", &decodeHint}, {"ld", &decodeAccess<true>},
                                       {"ldu", &decodeAccess<true>},   {"prefetch", &decodeHint},
                                       {"prefetchu", &decodeHint},     {"st", &decodeAccess<false>}};
  return opcodes;
}

} // namespace kiln::ptx
