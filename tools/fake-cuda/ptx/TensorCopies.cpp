// SPDX-License-Identifier: Apache-2.0
//
// cp.async.bulk.tensor: copies boxes of a tensor to shared memory, where an mbarrier counts their bytes, and back. The
// copy is immediate, but the race detector assigns it to a separate actor: a reader that has not waited for the
// mbarrier races with it.
#include <fmt/format.h>

#include "Block.h"
#include "Decoder.h"
#include "Lanes.h"
#include "TensorMap.h"

namespace kiln::ptx {
namespace {

TensorMap mapAt(Warp &warp, std::uint64_t address, unsigned lane, unsigned rank) {
  std::array<std::byte, 128> bytes;
  if (address % 64)
    throw Fault(fmt::format("a tensor map is at {:#x}: a multiple of 64 is required", address), static_cast<int>(lane));
  for (unsigned i = 0; i < 128; i += 16)
    std::memcpy(bytes.data() + i, warp.reach(Space::generic, address + i, 16, 1, Access::read, lane).data, 16);
  const auto map = decodeTensorMap(bytes);
  if (!map)
    throw Fault(fmt::format("there is no tensor map at {:#x}", address), static_cast<int>(lane));
  if (map->rank != rank)
    throw Fault(fmt::format("the tensor map has {} dimensions, the copy {}", map->rank, rank), static_cast<int>(lane));
  if (const auto wrong = check(*map))
    throw Fault(*wrong, static_cast<int>(lane));
  return *map;
}

/// Calls `visit` for each 16 bytes of the box: its offset in the box, its global address, and how many of its bytes are
/// in the tensor.
template <class Visit> void eachChunk(const TensorMap &map, const std::array<std::int64_t, 5> &first, Visit visit) {
  const unsigned perChunk = 16 / map.elementBytes;
  unsigned rows = 1;
  for (unsigned i = 1; i < map.rank; ++i)
    rows *= map.box[i];
  std::uint32_t offset = 0;
  for (unsigned row = 0; row < rows; ++row) {
    bool inside = true;
    std::uint64_t address = map.address;
    unsigned rest = row;
    for (unsigned i = 1; i < map.rank; ++i) {
      const std::int64_t at = first[i] + rest % map.box[i];
      rest /= map.box[i];
      inside &= at >= 0 && at < static_cast<std::int64_t>(map.extents[i]);
      address += static_cast<std::uint64_t>(at) * map.strides[i - 1];
    }
    for (unsigned column = 0; column < map.box[0]; column += perChunk, offset += 16) {
      const std::int64_t at = first[0] + column;
      // A chunk may begin before the tensor's first element, or end after its last one.
      const std::int64_t from = std::max<std::int64_t>(at, 0);
      const std::int64_t to = std::min<std::int64_t>(at + perChunk, static_cast<std::int64_t>(map.extents[0]));
      const auto begin = static_cast<unsigned>(from - at) * map.elementBytes;
      const auto bytes = inside && to > from ? static_cast<unsigned>(to - from) * map.elementBytes : 0;
      visit(offset, address + static_cast<std::uint64_t>(from) * map.elementBytes, begin, bytes);
    }
  }
}

std::array<std::int64_t, 5> coordinates(Warp &warp, const Instruction &i, unsigned first, unsigned lane) {
  std::array<std::int64_t, 5> at{};
  for (unsigned k = 0; k < i.elements; ++k)
    at[k] = warp.read<std::int32_t>(i.operands[first + k])[lane];
  return at;
}

std::uint64_t sharedAddress(Warp &warp, const Operand &operand, std::uint32_t offset, unsigned lane,
                            unsigned alignment) {
  const std::uint64_t base =
      operand.bits == 64 ? warp.read<std::uint64_t>(operand)[lane] : warp.read<std::uint32_t>(operand)[lane];
  const std::uint64_t at = (base + static_cast<std::uint64_t>(static_cast<std::int32_t>(offset))) & (windowSize - 1);
  if (at % alignment)
    throw Fault(fmt::format("the shared address {:#x} is misaligned: a multiple of {} is required", at, alignment),
                static_cast<int>(lane));
  return at;
}

/// Copies to one block.
void bring(Warp &warp, const Instruction &i, const TensorMap &map, const std::array<std::int64_t, 5> &first,
           std::uint64_t to, std::uint64_t barrierAt, unsigned lane) {
  Block &block = warp.block.cluster.blockOf(warp, to, lane);
  Mbarrier &barrier = mbarrierAt(warp, barrierAt, lane);
  barrier.copies.advance(barrier.copier);
  const Accessor copier{barrier.copier, &barrier.copies, wholeWarp, i.line};
  block.visit(copier);
  const std::uint64_t rank = to >> sharedRankShift << sharedRankShift;
  std::int64_t bytes = 0;
  eachChunk(map, first, [&](std::uint32_t offset, std::uint64_t from, unsigned begin, unsigned there) {
    std::array<std::byte, 16> chunk{};
    if (there)
      std::memcpy(chunk.data() + begin, warp.reach(Space::global, from, there, 1, Access::read, lane).data, there);
    const std::uint64_t at = rank | swizzled(static_cast<std::uint32_t>(to - rank) + offset, map.swizzle);
    const Bytes target = warp.reach(Space::shared, at, 16, 16, Access::copy, lane);
    std::memcpy(target.data, chunk.data(), 16);
    block.races.copied(static_cast<std::uint32_t>(target.data - block.shared.data()), 16, warp.accessor(lane), copier);
    bytes += 16;
  });
  barrier.bytes -= bytes;
  barrier.arriving.join(barrier.copies);
  barrier.completeIfFull();
}

/// Operands: target, map, mbarrier, coordinates, blocks. flags: offsets of target and mbarrier, multicast.
void load(Warp &warp, const Instruction &i) {
  eachLane(warp.executing, [&](unsigned lane) {
    const TensorMap map = mapAt(warp, warp.read<std::uint64_t>(i.operands[1])[lane], lane, i.elements);
    const auto first = coordinates(warp, i, 3, lane);
    const std::uint64_t to = sharedAddress(warp, i.operands[0], i.flags[0], lane, 128);
    const std::uint64_t barrier = sharedAddress(warp, i.operands[2], i.flags[1], lane, 8);
    if (!i.flags[2])
      return bring(warp, i, map, first, to, barrier, lane);
    const auto *masks = warp.read<std::uint16_t>(i.operands[3 + i.elements]);
    constexpr std::uint64_t low = (1U << sharedRankShift) - 1;
    for (unsigned rank = 0; rank < 16; ++rank)
      if (masks[lane] >> rank & 1) {
        const std::uint64_t block = static_cast<std::uint64_t>(rank + 1) << sharedRankShift;
        bring(warp, i, map, first, block | (to & low), block | (barrier & low), lane);
      }
  });
  ++warp.block.launch.changes;
}

/// Operands: source, map, coordinates. flags: offset of the source.
void store(Warp &warp, const Instruction &i) {
  eachLane(warp.executing, [&](unsigned lane) {
    const TensorMap map = mapAt(warp, warp.read<std::uint64_t>(i.operands[1])[lane], lane, i.elements);
    const std::uint64_t from = sharedAddress(warp, i.operands[0], i.flags[0], lane, 128);
    eachChunk(map, coordinates(warp, i, 2, lane),
              [&](std::uint32_t offset, std::uint64_t to, unsigned begin, unsigned there) {
                if (!there)
                  return;
                const std::uint32_t at = swizzled(static_cast<std::uint32_t>(from) + offset, map.swizzle);
                const Bytes source = warp.reach(Space::shared, at + begin, there, 1, Access::read, lane);
                std::memcpy(warp.reach(Space::global, to, there, 1, Access::write, lane).data, source.data, there);
              });
  });
}

void nothing(Warp &, const Instruction &) {}

/// Adds the base of an address as an operand, and returns its offset.
std::uint32_t addAddress(Decoding &d, const syntax::Operand &operand) {
  d.out.space = Space::shared;
  d.address(operand);
  return static_cast<std::uint32_t>(d.out.offset);
}

void addMap(Decoding &d, const syntax::Operand &operand, unsigned rank) {
  if (operand.form != syntax::Operand::Form::address || operand.parts.size() != rank)
    d.fail(fmt::format("[map, {{{} coordinates}}] is required", rank));
  syntax::Operand base = operand;
  base.form = syntax::Operand::Form::name;
  d.source(base, Type::b64);
}

} // namespace

/// Decodes what follows cp.async.bulk.
void decodeBulkCopy(Decoding &d) {
  // Stores read their source immediately, so that there is nothing to wait for.
  if (d.take("commit_group") || d.take("wait_group")) {
    d.take("read");
    return d.emit(&nothing);
  }
  if (!d.take("tensor"))
    d.fail("cp.async.bulk is modelled as .tensor");
  const std::string_view size = d.takeOneOf({"1d", "2d", "3d", "4d", "5d"});
  if (size.empty())
    d.fail("the tensor has no number of dimensions");
  const unsigned rank = static_cast<unsigned>(size[0] - '0');
  d.out.elements = static_cast<std::uint8_t>(rank);
  d.take("tile");
  const bool hint = d.take("L2::cache_hint");
  const bool stores = d.take("bulk_group");
  d.take("global");
  if (d.takeOneOf({"shared::cluster", "shared::cta"}).empty())
    d.fail("the copy has no shared memory");
  if (stores) {
    d.expectOperands(hint ? 3 : 2);
    d.out.flags[0] = addAddress(d, d.operand(1));
    addMap(d, d.operand(0), rank);
    for (const syntax::Operand &coordinate : d.operand(0).parts)
      d.source(coordinate, Type::s32);
    return d.emit(&store);
  }
  if (!d.take("mbarrier::complete_tx::bytes"))
    d.fail("the copy has no mbarrier");
  d.out.flags[2] = d.take("multicast::cluster");
  d.expectOperands(3U + d.out.flags[2] + hint);
  d.out.flags[0] = addAddress(d, d.operand(0));
  addMap(d, d.operand(1), rank);
  d.out.flags[1] = addAddress(d, d.operand(2));
  for (const syntax::Operand &coordinate : d.operand(1).parts)
    d.source(coordinate, Type::s32);
  if (d.out.flags[2])
    d.source(d.operand(3), Type::u16);
  d.emit(&load);
}

} // namespace kiln::ptx
