// SPDX-License-Identifier: Apache-2.0
//
// The scheduling of all warps, the barrier of a cluster, and its shared memory.
#include <algorithm>
#include <fmt/format.h>

#include "Block.h"
#include "Fault.h"

namespace kiln::ptx {
namespace {

/// Instructions that a warp executes before the next warp is scheduled.
constexpr std::uint64_t turn = 20'000;

} // namespace

Cluster::Cluster(LaunchContext &launch, Dim3 first) : launch(launch) {
  const Dim3 &size = launch.config.cluster;
  for (std::uint32_t z = 0; z < size.z; ++z)
    for (std::uint32_t y = 0; y < size.y; ++y)
      for (std::uint32_t x = 0; x < size.x; ++x)
        blocks.push_back(std::make_unique<Block>(launch, *this, Dim3{first.x + x, first.y + y, first.z + z},
                                                 static_cast<unsigned>(blocks.size())));
  actors = static_cast<unsigned>(blocks.size() * blocks.front()->warps.size());
}

void Cluster::run() {
  // Consecutive rounds in which all warps waited and no event occurred that they can wait for.
  unsigned idle = 0;
  for (bool live = true; live;) {
    live = false;
    bool used = false;
    const std::uint64_t before = launch.changes;
    for (const auto &block : blocks)
      for (const auto &warp : block->warps) {
        faulting = warp.get();
        const Warp::Turn ended = warp->run(turn);
        live |= ended != Warp::Turn::ended;
        used |= ended == Warp::Turn::used;
      }
    idle = used || launch.changes != before ? 0 : idle + 1;
    if (live && idle > 16)
      reportDeadlock();
    if (instructions() > launch.config.limit)
      throw Fault(fmt::format("{} instructions of warps have run: the kernel is taken to hang", launch.config.limit));
  }
}

std::uint64_t Cluster::instructions() const {
  std::uint64_t sum = 0;
  for (const auto &block : blocks)
    for (const auto &warp : block->warps)
      sum += warp->instructions;
  return sum;
}

std::uint64_t Cluster::threadInstructions() const {
  std::uint64_t sum = 0;
  for (const auto &block : blocks)
    for (const auto &warp : block->warps)
      sum += warp->threadInstructions;
  return sum;
}

void Cluster::reportDeadlock() {
  std::string standing;
  faulting = nullptr;
  for (const auto &block : blocks)
    for (const auto &warp : block->warps) {
      if (!warp->alive)
        continue;
      if (!faulting)
        faulting = warp.get();
      if (!standing.empty())
        standing += ", ";
      if (blocks.size() > 1)
        standing += fmt::format("block {} of the cluster ", block->rank);
      standing += warp->standing();
    }
  throw Fault("deadlock: " + standing);
}

Bytes Cluster::reachShared(Warp &warp, std::uint64_t at, unsigned bytes, Access access, unsigned lane,
                           const void *values) {
  Block &block = blockOf(warp, at, lane);
  const int thread = lane == wholeWarp ? -1 : static_cast<int>(lane);
  const std::uint64_t address = at & ((1U << sharedRankShift) - 1);
  const std::uint32_t start = launch.program.sharedStart;
  if (address < start || address - start + bytes > block.sharedBytes)
    throw Fault(fmt::format("{} bytes at {:#x} are out of range of the {} bytes of shared memory, which start at {:#x}",
                            bytes, address, block.sharedBytes, start),
                thread);
  const auto offset = static_cast<std::uint32_t>(address - start);
  const Bytes found{block.shared.data() + offset, block.written.data() + offset};
  const bool needsWritten = access != Access::write && access != Access::copy;
  for (unsigned i = 0; i < bytes; ++i) {
    if (found.written[i] == 1)
      continue;
    if (found.written[i] == Block::pending)
      throw Fault(fmt::format("touches shared byte {}, which {} writes and has not been waited for", address + i,
                              block.pendingWords(offset + i)),
                  thread);
    if (needsWritten)
      throw Fault(fmt::format("reads shared byte {}, which has not been written", address + i), thread);
  }
  // Arrivals at an mbarrier, and copies, record their accesses at their completion.
  if (&block != &warp.block && access != Access::barrier && access != Access::copy)
    block.visit(warp.accessor(lane));
  if (access == Access::read) {
    block.races.read(offset, bytes, warp.accessor(lane));
    return found;
  }
  if (block.matrixReaders)
    block.checkMatrixReads(offset, bytes, thread);
  if (access != Access::barrier)
    ++launch.changes;
  if (access == Access::atomic || access == Access::barrier)
    block.races.atomic(offset, bytes, warp.accessor(lane));
  else if (access == Access::write)
    block.races.write(offset, bytes, warp.accessor(lane), values && std::memcmp(values, found.data, bytes) == 0);
  std::memset(found.written, 1, bytes);
  return found;
}

Block &Cluster::blockOf(Warp &warp, std::uint64_t at, unsigned lane) {
  const std::uint64_t rank = at >> sharedRankShift;
  if (rank == 0)
    return warp.block;
  if (rank > blocks.size())
    throw Fault(fmt::format("shared address {:#x} is of block {} of a cluster of {}", at, rank - 1, blocks.size()),
                static_cast<int>(lane));
  Block &block = *blocks[rank - 1];
  if (&block == &warp.block)
    return block;
  const auto isKnown = [&](const auto &of) { return warp.clock.of(of->actor) > 0; };
  if (std::none_of(block.warps.begin(), block.warps.end(), isKnown))
    throw Fault(fmt::format("reaches shared memory of the cluster's block {}, which may not have begun", block.rank),
                static_cast<int>(lane));
  if (block.liveThreads() == 0)
    throw Fault(fmt::format("reaches shared memory of the cluster's block {}, which has ended", block.rank),
                static_cast<int>(lane));
  return block;
}

unsigned Cluster::liveThreads() const {
  unsigned threads = 0;
  for (const auto &block : blocks)
    threads += block->liveThreads();
  return threads;
}

void Cluster::arrive(Warp &warp) {
  arrived += static_cast<unsigned>(std::popcount(warp.executing));
  open.join(warp.clock);
  warp.clock.advance(warp.actor);
  for (unsigned lane = 0; lane < warpSize; ++lane)
    if (warp.executing >> lane & 1)
      warp.clusterPhase[lane] = phase + 1;
  ++launch.changes;
  completeIfFull();
}

void Cluster::wait(Warp &warp) {
  for (unsigned lane = 0; lane < warpSize; ++lane)
    if (warp.executing >> lane & 1 && warp.clusterPhase[lane] == 0)
      throw Fault("waits for the cluster's barrier before it has arrived there", static_cast<int>(lane));
  if (warp.clusterPhase[std::countr_zero(warp.executing)] <= phase)
    warp.clock.join(clock);
  else
    warp.stopAt(clusterBarrier);
}

void Cluster::completeIfFull() {
  if (arrived == 0 || arrived < liveThreads())
    return;
  ++phase;
  arrived = 0;
  clock = open;
  open.clear();
  for (const auto &block : blocks)
    for (const auto &warp : block->warps)
      if (warp->release(clusterBarrier))
        warp->clock.join(clock);
}

void Cluster::threadsExited() { completeIfFull(); }

} // namespace kiln::ptx
