// SPDX-License-Identifier: Apache-2.0
//
// mbarrier: init, arrive, expect_tx, test_wait, try_wait, inval. A thread whose wait fails yields to others.
#include <fmt/format.h>

#include "Block.h"
#include "Decoder.h"
#include "Lanes.h"

namespace kiln::ptx {

void Mbarrier::completeIfFull() {
  if (left != 0 || bytes != 0)
    return;
  ++phase;
  left = count;
  complete.join(arriving);
  arriving.clear();
}

namespace {

constexpr std::uint64_t mark = 0x6b72616d7262626d;

std::uint32_t within(std::uint64_t address) {
  return static_cast<std::uint32_t>(address & ((1U << sharedRankShift) - 1));
}

/// Values of flags[2]: whether the address may be another block's.
enum : std::uint32_t { thisBlock = 0, anyBlock = 1 };

/// Returns the shared address of an operand, from either window.
std::uint64_t sharedAddress(Warp &warp, const Operand &operand, const Instruction &i, unsigned lane) {
  const std::uint64_t at = warp.address(operand, i, lane);
  if (i.space == Space::generic && (at & ~(windowSize - 1)) != sharedWindow)
    throw Fault("the address of an mbarrier is not in shared memory", static_cast<int>(lane));
  const std::uint64_t address = at & (windowSize - 1);
  if (i.flags[2] == thisBlock && &warp.block.cluster.blockOf(warp, address, lane) != &warp.block)
    throw Fault("the mbarrier is another block's, which is reached by arrivals of .shared::cluster alone",
                static_cast<int>(lane));
  return address;
}

void initialise(Warp &warp, const Instruction &i) {
  const auto *counts = warp.read<std::uint32_t>(i.operands[1]);
  eachLane(warp.executing, [&](unsigned lane) {
    const std::uint64_t at = sharedAddress(warp, i.operands[0], i, lane);
    if (counts[lane] == 0 || counts[lane] >= 1U << 20)
      throw Fault(fmt::format("an mbarrier counts 1 to 2^20 - 1 arrivals, got {}", counts[lane]),
                  static_cast<int>(lane));
    const Bytes bytes = warp.reach(Space::shared, at, 8, 8, Access::write, lane);
    std::memcpy(bytes.data, &mark, 8);
    Mbarrier &barrier = warp.block.mbarriers[within(at)];
    barrier = {};
    barrier.count = barrier.left = counts[lane];
    barrier.copier = warp.block.cluster.copier();
  });
}

void invalidate(Warp &warp, const Instruction &i) {
  eachLane(warp.executing, [&](unsigned lane) {
    const std::uint64_t at = sharedAddress(warp, i.operands[0], i, lane);
    mbarrierAt(warp, at, lane);
    std::memset(warp.reach(Space::shared, at, 8, 8, Access::write, lane).data, 0, 8);
    warp.block.mbarriers.erase(within(at));
  });
}

/// Operands: the state or nothing, the address, a count. flags: whether the count is in bytes, whether it also arrives.
void arrive(Warp &warp, const Instruction &i) {
  const bool expects = i.flags[0], arrives = i.flags[1];
  const auto *counts = i.count > 2 ? warp.read<std::uint32_t>(i.operands[2]) : nullptr;
  std::uint64_t states[warpSize] = {};
  eachLane(warp.executing, [&](unsigned lane) {
    const std::uint64_t at = sharedAddress(warp, i.operands[1], i, lane);
    Mbarrier &barrier = mbarrierAt(warp, at, lane);
    if (Block &block = warp.block.cluster.blockOf(warp, at, lane); &block != &warp.block)
      block.visit(warp.accessor(lane));
    states[lane] = barrier.phase;
    if (expects)
      barrier.bytes += counts[lane];
    if (!arrives)
      return;
    const std::uint32_t arrivals = counts && !expects ? counts[lane] : 1;
    if (arrivals > barrier.left)
      throw Fault(fmt::format("{} arrivals at an mbarrier that lacks {} of {}", arrivals, barrier.left, barrier.count),
                  static_cast<int>(lane));
    barrier.left -= arrivals;
    barrier.arriving.join(warp.clock);
    barrier.completeIfFull();
  });
  warp.clock.advance(warp.actor);
  ++warp.block.launch.changes;
  warp.put(i.operands[0], states);
}

/// Operands: whether the phase is complete, the address, the state or the parity. flags: parity.
void wait(Warp &warp, const Instruction &i) {
  const auto *states = i.flags[0] ? nullptr : warp.read<std::uint64_t>(i.operands[2]);
  const auto *parities = i.flags[0] ? warp.read<std::uint32_t>(i.operands[2]) : nullptr;
  std::uint32_t lanes = 0;
  eachLane(warp.executing, [&](unsigned lane) {
    const Mbarrier &barrier = mbarrierAt(warp, sharedAddress(warp, i.operands[1], i, lane), lane);
    const bool done = parities ? (barrier.phase & 1) != parities[lane] : barrier.phase > states[lane];
    if (done)
      warp.clock.join(barrier.complete);
    lanes |= static_cast<std::uint32_t>(done) << lane;
  });
  warp.writePredicate(i.operands[0], lanes);
  if (lanes != warp.executing)
    warp.poll();
}

/// Returns whether the address is in .shared::cluster.
bool takeOrder(Decoding &d) {
  d.takeOneOf({"acquire", "release", "relaxed"});
  d.takeOneOf({"cta", "cluster"});
  const std::string_view space = d.takeOneOf({"shared", "shared::cta", "shared::cluster"});
  d.out.space = space.empty() ? Space::generic : Space::shared;
  if (!d.take("b64"))
    d.fail("mbarrier is of .b64");
  return space == "shared::cluster";
}

void decodeArrive(Decoding &d, bool arrives) {
  const bool expects = d.take("expect_tx");
  if (!arrives && !expects)
    d.fail("this operation of mbarrier is not modelled");
  d.out.flags[0] = expects;
  d.out.flags[1] = arrives;
  d.out.flags[2] = takeOrder(d) ? anyBlock : thisBlock;
  // Arrivals at another block's barrier, and a plain expect_tx, have no state operand.
  const bool keeps = d.operand(0).form != syntax::Operand::Form::address;
  const unsigned first = keeps ? 1 : 0;
  if (d.out.flags[2] == anyBlock && keeps && d.operand(0).name != "_")
    d.fail("an arrival of .shared::cluster has no state");
  d.expectOperands(first + 1, first + 2);
  d.target(keeps ? d.operand(0) : d.nowhere(), Type::b64);
  d.address(d.operand(first));
  if (expects || d.operands() > first + 1)
    d.source(d.operand(first + 1), Type::u32);
  d.emit(&arrive);
}

void decodeMbarrier(Decoding &d) {
  if (d.take("init")) {
    takeOrder(d);
    d.expectOperands(2);
    d.address(d.operand(0));
    d.source(d.operand(1), Type::u32);
    return d.emit(&initialise);
  }
  if (d.take("inval")) {
    takeOrder(d);
    d.expectOperands(1);
    d.address(d.operand(0));
    return d.emit(&invalidate);
  }
  if (!d.takeOneOf({"try_wait", "test_wait"}).empty()) {
    d.out.flags[0] = d.take("parity");
    takeOrder(d);
    d.expectOperands(3, 4); // the last one is a time limit
    d.predicateTarget(d.operand(0));
    d.address(d.operand(1));
    d.source(d.operand(2), d.out.flags[0] ? Type::u32 : Type::b64);
    return d.emit(&wait);
  }
  decodeArrive(d, d.take("arrive"));
}

/// mapa: maps an address of this block's shared memory to another block's.
void mapAddress(Warp &warp, const Instruction &i) {
  const auto *ranks = warp.read<std::uint32_t>(i.operands[2]);
  const bool wide = i.operands[1].bits == 64;
  std::uint64_t result[warpSize] = {};
  eachLane(warp.executing, [&](unsigned lane) {
    const std::uint64_t at = warp.address(i.operands[1], i, lane);
    if (ranks[lane] >= warp.block.cluster.blocks.size())
      throw Fault(
          fmt::format("maps an address to block {} of a cluster of {}", ranks[lane], warp.block.cluster.blocks.size()),
          static_cast<int>(lane));
    result[lane] =
        (at & ~(windowSize - 1)) | static_cast<std::uint64_t>(ranks[lane] + 1) << sharedRankShift | within(at);
  });
  if (wide)
    return warp.put(i.operands[0], result);
  std::uint32_t narrow[warpSize];
  for (unsigned lane = 0; lane < warpSize; ++lane)
    narrow[lane] = static_cast<std::uint32_t>(result[lane]);
  warp.put(i.operands[0], narrow);
}

void decodeMapa(Decoding &d) {
  d.take("shared::cluster");
  const Type type = d.takeType();
  d.expectOperands(3);
  d.target(d.operand(0), type);
  d.source(d.operand(1), type);
  d.source(d.operand(2), Type::u32);
  d.emit(&mapAddress);
}

} // namespace

Mbarrier &mbarrierAt(Warp &warp, std::uint64_t address, unsigned lane) {
  // An atomic access, which must be ordered only after the initialisation.
  const Bytes bytes = warp.reach(Space::shared, address, 8, 8, Access::barrier, lane);
  auto &barriers = warp.block.cluster.blockOf(warp, address, lane).mbarriers;
  const auto found = barriers.find(within(address));
  if (found == barriers.end() || std::memcmp(bytes.data, &mark, 8) != 0)
    throw Fault(fmt::format("there is no mbarrier at {:#x}: it was not initialised, or written over", within(address)),
                static_cast<int>(lane));
  return found->second;
}

std::span<const Opcode> mbarrierOpcodes() {
  static constexpr Opcode opcodes[] = {{"mapa", &decodeMapa}, {"mbarrier", &decodeMbarrier}};
  return opcodes;
}

} // namespace kiln::ptx
