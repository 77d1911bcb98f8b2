// SPDX-License-Identifier: Apache-2.0
//
// bar, barrier, bar.warp.sync and barrier.cluster.
#include <fmt/format.h>

#include "Block.h"
#include "Decoder.h"
#include "Lanes.h"

namespace kiln::ptx {
namespace {

std::uint32_t uniform(Warp &warp, const Operand &operand, const char *what) {
  const auto *values = warp.read<std::uint32_t>(operand);
  const std::uint32_t value = values[std::countr_zero(warp.executing)];
  eachLane(warp.executing, [&](unsigned lane) {
    if (values[lane] != value)
      throw Fault(fmt::format("the {} differs between the lanes of a warp: {} and {}", what, value, values[lane]),
                  static_cast<int>(lane));
  });
  return value;
}

/// Operands: the barrier, the number of threads. flags: whether it waits, whether all lanes must be converged.
void blockBarrier(Warp &warp, const Instruction &i) {
  if (i.flags[1] && !warp.together())
    return;
  const std::uint32_t id = uniform(warp, i.operands[0], "barrier");
  const std::uint32_t count = i.count > 1 ? uniform(warp, i.operands[1], "number of threads") : 0;
  warp.block.barrier(warp, id, count, i.flags[0] != 0);
}

void warpBarrier(Warp &warp, const Instruction &i) {
  const auto *masks = warp.read<std::uint32_t>(i.operands[0]);
  warp.warpBarrier(masks[std::countr_zero(warp.executing)]);
}

/// flags: whether it waits, whether all lanes must be converged.
void clusterBarrier(Warp &warp, const Instruction &i) {
  if (i.flags[1] && !warp.together())
    return;
  if (i.flags[0])
    warp.block.cluster.wait(warp);
  else
    warp.block.cluster.arrive(warp);
}

void decodeBarrier(Decoding &d) {
  const bool old = d.statement.opcode == "bar";
  if (d.take("warp")) {
    if (!d.take("sync"))
      d.fail("bar.warp needs .sync");
    d.expectOperands(1);
    d.source(d.operand(0), Type::b32);
    return d.emit(&warpBarrier);
  }
  const bool cluster = d.take("cluster");
  d.take("cta");
  const std::string_view kind = d.takeOneOf({"sync", "arrive", "wait"});
  if (kind.empty())
    d.fail("a barrier needs .sync or .arrive; .red is not modelled");
  d.out.flags[0] = kind != "arrive";
  d.out.flags[1] = d.take("aligned") || (old && !cluster);
  if (cluster) {
    d.takeOneOf({"acquire", "release", "relaxed"});
    d.expectOperands(0);
    return d.emit(&clusterBarrier);
  }
  if (kind == "wait")
    d.fail("a barrier of a block has no .wait");
  d.expectOperands(kind == "arrive" ? 2 : 1, 2);
  for (const syntax::Operand &operand : d.statement.operands)
    d.source(operand, Type::u32);
  d.emit(&blockBarrier);
}

} // namespace

std::span<const Opcode> barrierOpcodes() {
  static constexpr Opcode opcodes[] = {{"bar", &decodeBarrier}, {"barrier", &decodeBarrier}};
  return opcodes;
}

} // namespace kiln::ptx
