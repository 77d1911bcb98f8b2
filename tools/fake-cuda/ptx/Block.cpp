// SPDX-License-Identifier: Apache-2.0
//
// Shared memory with its checks, and a block's barriers.
#include "Block.h"

#include <algorithm>
#include <fmt/format.h>

#include "Fault.h"

namespace kiln::ptx {
namespace {

unsigned warpsOf(const LaunchConfig &config) {
  return static_cast<unsigned>((config.block.count() + warpSize - 1) / warpSize);
}

} // namespace

Block::Block(LaunchContext &launch, Cluster &cluster, Dim3 id, unsigned rank)
    : launch(launch), cluster(cluster), id(id), rank(rank),
      sharedBytes(launch.program.staticShared + launch.config.dynamicShared), shared(sharedBytes), written(sharedBytes),
      races(launch.program.sharedStart, sharedBytes, warpsOf(launch.config),
            warpsOf(launch.config) * static_cast<unsigned>(launch.config.cluster.count())) {
  const auto threads = static_cast<unsigned>(launch.config.block.count());
  for (unsigned first = 0; first < threads; first += warpSize)
    warps.push_back(std::make_unique<Warp>(*this, first / warpSize, std::min(threads - first, warpSize)));
}

unsigned Block::liveThreads() const {
  unsigned threads = 0;
  for (const auto &warp : warps)
    threads += static_cast<unsigned>(std::popcount(warp->alive));
  return threads;
}

void Block::barrier(Warp &warp, unsigned id, std::uint32_t count, bool stops) {
  if (id >= barriers.size())
    throw Fault(fmt::format("barrier {} is none of 0 to 15", id));
  if (count % warpSize)
    throw Fault(fmt::format("barrier {} of {} threads: a multiple of 32 is required", id, count));
  Barrier &barrier = barriers[id];
  if (barrier.used && barrier.count != count)
    throw Fault(fmt::format("barrier {} is for {} threads here, and for {} where others have arrived", id, count,
                            barrier.count));
  barrier.used = true;
  barrier.count = count;
  // A barrier counts whole warps, including warps with fewer than 32 threads.
  const bool whole = warp.executing == warp.alive;
  barrier.arrived += count != 0 && whole ? warpSize : static_cast<unsigned>(std::popcount(warp.executing));
  if (count != 0 && barrier.arrived > count)
    throw Fault(fmt::format("barrier {} is for {} threads, and more have arrived", id, count));
  barrier.clock.join(warp.clock);
  warp.clock.advance(warp.actor);
  ++launch.changes;
  if (stops)
    warp.stopAt(static_cast<int>(id));
  completeIfFull(id);
}

void Block::completeIfFull(unsigned id) {
  Barrier &barrier = barriers[id];
  if (!barrier.used || barrier.arrived < (barrier.count ? barrier.count : liveThreads()))
    return;
  for (const auto &warp : warps) {
    if (!warp->release(static_cast<int>(id)))
      continue;
    warp->clock.join(barrier.clock);
  }
  barrier = {};
}

std::string Block::pendingWords(std::uint32_t offset) const {
  for (const auto &warp : warps)
    for (const CopyGroups &groups : warp->copies) {
      const auto find = [&](const std::vector<PendingCopy> &group) {
        return std::find_if(group.begin(), group.end(),
                            [&](const PendingCopy &c) { return offset - c.offset < c.bytes; });
      };
      if (const auto found = find(groups.open); found != groups.open.end())
        return fmt::format("cp.async of line {}", found->line);
      for (const auto &group : groups.committed)
        if (const auto found = find(group); found != group.end())
          return fmt::format("cp.async of line {}", found->line);
    }
  return "cp.async";
}

void Block::checkMatrixReads(std::uint32_t offset, unsigned bytes, int lane) const {
  const std::uint32_t first = offset + launch.program.sharedStart;
  const auto check = [&](const std::vector<MatrixRead> &reads) {
    for (const MatrixRead &read : reads)
      if (read.address < first + bytes && first < read.address + 16)
        throw Fault(fmt::format("writes shared byte {}, which the wgmma of line {} reads and has not been waited for",
                                std::max(first, read.address), read.line),
                    lane);
  };
  for (const auto &warp : warps) {
    check(warp->matrixReads.open);
    for (const auto &group : warp->matrixReads.committed)
      check(group);
  }
}

void Block::visit(const Accessor &who) { visits[who.actor] = {who.clock->of(who.actor), who.line}; }

/// A block ends after all of its warps, so that it is enough if one of them is ordered after the access.
void Block::checkVisits() const {
  VectorClock known;
  for (const auto &warp : warps)
    known.join(warp->clock);
  for (const auto &[actor, visit] : visits)
    if (visit.time > known.of(actor))
      throw Fault(fmt::format("the block ends, and {} reaches its shared memory at line {} with no barrier between",
                              races.nameOf(actor), visit.line));
}

void Block::threadsExited() {
  if (liveThreads() == 0)
    checkVisits();
  for (unsigned id = 0; id < barriers.size(); ++id)
    if (barriers[id].used && barriers[id].count == 0)
      completeIfFull(id);
  cluster.threadsExited();
}

} // namespace kiln::ptx
