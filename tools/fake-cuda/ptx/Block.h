// SPDX-License-Identifier: Apache-2.0
//
// A thread block and its cluster: shared memory, barriers, and the scheduling of warps. A launch without clusters has
// clusters of one block.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "Launch.h"
#include "Mbarrier.h"
#include "Warp.h"

namespace kiln::ptx {

/// The state that all blocks of a launch share.
struct LaunchContext {
  const Program &program;
  const std::byte *constants;
  LaunchConfig config;
  std::span<const std::byte> parameters;
  Memory &memory;
  /// Counts events that other threads can wait for. If all threads wait and the count stays constant, there is a
  /// deadlock.
  std::uint64_t changes = 0;
  /// See LaunchResult.
  std::uint64_t bankConflicts = 0;
};

class Cluster;

class Block {
public:
  Block(LaunchContext &launch, Cluster &cluster, Dim3 id, unsigned rank);

  LaunchContext &launch;
  Cluster &cluster;
  const Dim3 id;
  const unsigned rank; ///< in the cluster
  const std::uint32_t sharedBytes;
  std::vector<std::byte> shared;
  std::vector<std::uint8_t> written;         ///< for each shared byte: 0, 1, or `pending`
  static constexpr std::uint8_t pending = 2; ///< written by a cp.async that has not been waited for
  Races races;
  std::vector<std::unique_ptr<Warp>> warps;
  /// Number of 16-byte chunks that a wgmma reads which has not been waited for.
  std::uint64_t matrixReaders = 0;
  /// Checks that no such chunk is among these bytes, which are to be written.
  void checkMatrixReads(std::uint32_t offset, unsigned bytes, int lane) const;
  Mbarriers mbarriers;
  /// Records that another block's thread, or a copy, accesses this block's shared memory: the block must not end before
  /// it is ordered after the access.
  void visit(const Accessor &who);

  /// bar.sync and bar.arrive of the executing lanes of `warp`. A `count` of 0 means all live threads.
  void barrier(Warp &warp, unsigned id, std::uint32_t count, bool stops);
  /// Called after threads have exited: a barrier for all threads may now be complete.
  void threadsExited();
  unsigned liveThreads() const;
  /// Returns the description of the copy that has not been waited for.
  std::string pendingWords(std::uint32_t offset) const;

private:
  struct Barrier {
    std::uint32_t arrived = 0, count = 0;
    bool used = false;
    VectorClock clock;
  };
  struct Visit {
    std::uint32_t time = 0;
    unsigned line = 0;
  };
  void completeIfFull(unsigned id);
  void checkVisits() const;

  std::array<Barrier, 16> barriers;
  std::map<unsigned, Visit> visits; ///< last access of each actor
};

class Cluster {
public:
  /// `first` is the block id of rank zero.
  Cluster(LaunchContext &launch, Dim3 first);

  /// Runs until all threads end. Throws Fault; `faulting` is then the warp.
  void run();

  LaunchContext &launch;
  std::vector<std::unique_ptr<Block>> blocks;
  Warp *faulting = nullptr;
  std::uint64_t instructions() const;
  std::uint64_t threadInstructions() const;

  /// Returns a new actor for asynchronous copies.
  unsigned copier() { return actors++; }
  /// barrier.cluster.arrive and .wait of the executing lanes.
  void arrive(Warp &warp);
  void wait(Warp &warp);
  void threadsExited();
  /// Implements Warp::reach for shared memory, after the alignment check; `lane` may be wholeWarp.
  Bytes reachShared(Warp &warp, std::uint64_t address, unsigned bytes, Access access, unsigned lane,
                    const void *values = nullptr);
  /// Returns the block that owns the shared address. The block must be known to have begun, and must not have ended.
  Block &blockOf(Warp &warp, std::uint64_t address, unsigned lane);
  /// Barrier number for Warp::stopAt.
  static constexpr int clusterBarrier = 16;

private:
  [[noreturn]] void reportDeadlock();
  void completeIfFull();
  unsigned liveThreads() const;

  unsigned actors = 0;
  std::uint32_t arrived = 0;
  std::uint64_t phase = 0;
  VectorClock clock, open;
};

} // namespace kiln::ptx
