// SPDX-License-Identifier: Apache-2.0
//
// 32 threads that execute together. Where they diverge they become fragments, each a program counter and its lanes. The
// fragment with the lowest program counter runs, and fragments at the same instruction are merged: with blocks in
// LLVM's order this is reconvergence. An instruction that needs other lanes (.sync) blocks its fragment until they
// arrive.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "Fault.h"
#include "Instruction.h"
#include "Memory.h"
#include "Races.h"

namespace kiln::ptx {

class Block;

/// constant: a read of memory that no kernel writes. barrier: an mbarrier's own access, which is atomic and does not
/// synchronise by itself. copy: a write by an asynchronous copy, whose races the caller checks.
enum class Access : unsigned char { read, constant, write, atomic, barrier, copy };

/// Bytes of shared memory that a cp.async will write.
struct PendingCopy {
  std::uint32_t offset, bytes; ///< in the block's shared memory
  std::array<std::byte, 16> data;
  unsigned line;
};
struct CopyGroups {
  std::vector<std::vector<PendingCopy>> committed; ///< oldest first
  std::vector<PendingCopy> open;
};

/// 16 bytes of shared memory that a wgmma reads until it is waited for. No thread may write them before, and a later
/// write must be ordered after the wait.
struct MatrixRead {
  std::uint32_t address;
  unsigned line;
};
struct MatrixReads {
  std::vector<std::vector<MatrixRead>> committed; ///< oldest first
  std::vector<MatrixRead> open;
};

class Warp {
public:
  Warp(Block &block, unsigned index, unsigned threads);

  enum class Turn { ended, blocked, waiting, used };
  /// Runs up to `instructions`. blocked: no fragment can progress by itself; waiting: a fragment polled without
  /// success.
  Turn run(std::uint64_t instructions);

  // For handlers.
  Block &block;
  const unsigned index;        ///< in the block
  const unsigned actor;        ///< in the cluster
  std::uint32_t executing = 0; ///< lanes that execute the instruction
  std::uint32_t alive = 0;     ///< lanes that have not exited
  VectorClock clock;
  std::vector<CopyGroups> copies; ///< per lane; empty before the first one
  MatrixReads matrixReads;
  std::array<std::uint64_t, warpSize> clusterPhase{}; ///< the phase in which a lane has arrived, plus one
  std::uint32_t waited = 0;                           ///< lanes that have waited for the previous kernels
  std::uint64_t instructions = 0, threadInstructions = 0;

  /// Returns the values of a register or constant, after a check that the executing lanes have been written.
  template <class T> const T *read(const Operand &operand) const {
    if (operand.number < 0)
      return reinterpret_cast<const T *>(constants + operand.row);
    if (executing & ~defined[static_cast<unsigned>(operand.number)])
      unwritten(operand);
    return reinterpret_cast<const T *>(rows.data() + operand.row);
  }
  /// Reads without the check, for instructions that only move values.
  template <class T> const T *peek(const Operand &operand) const {
    return reinterpret_cast<const T *>((operand.number < 0 ? constants : rows.data()) + operand.row);
  }
  std::uint32_t definedLanes(const Operand &operand) const {
    return operand.number < 0 ? allLanes : defined[static_cast<unsigned>(operand.number)];
  }
  /// Returns the row to write; the executing lanes count as written.
  template <class T> T *write(const Operand &operand) {
    defined[static_cast<unsigned>(operand.number)] |= executing;
    return reinterpret_cast<T *>(rows.data() + operand.row);
  }
  void undefine(const Operand &operand, std::uint32_t lanes) {
    defined[static_cast<unsigned>(operand.number)] &= ~lanes;
  }
  /// Writes the executing lanes.
  template <class T> void put(const Operand &operand, const T (&values)[warpSize]) {
    T *to = write<T>(operand);
    if (executing == allLanes) {
      std::memcpy(to, values, sizeof values);
      return;
    }
    for (unsigned lane = 0; lane < warpSize; ++lane)
      to[lane] = executing >> lane & 1 ? values[lane] : to[lane];
  }
  std::uint32_t readPredicate(const Operand &operand) const;
  void writePredicate(const Operand &operand, std::uint32_t lanes);

  /// Returns the address of a lane; `operand` is a register of 32 or 64 bits, or a constant.
  std::uint64_t address(const Operand &operand, const Instruction &instruction, unsigned lane) const;
  /// Returns the bytes that one lane accesses, after all checks. For a write `values` distinguishes stores of equal
  /// values.
  Bytes reach(Space space, std::uint64_t address, unsigned bytes, unsigned alignment, Access access, unsigned lane,
              const void *values = nullptr);
  Accessor accessor(unsigned lane) const;

  /// Returns false if lanes of `needed` have not arrived: the fragment then waits for them and the instruction runs
  /// again.
  bool together(std::uint32_t needed);
  /// For .aligned instructions: all live lanes.
  bool together() { return together(alive); }
  void jump(std::uint32_t target);
  /// Executing lanes branch to different targets.
  void jumpEach(const std::uint32_t (&targets)[warpSize]);
  void exit();
  /// Blocks the executing lanes after this instruction until release(barrier).
  void stopAt(int barrier);
  /// Returns whether any lanes were released.
  bool release(int barrier);
  /// Yields to other warps: the polled condition does not hold yet.
  void poll() { polled = true; }
  /// bar.warp.sync of `members`, which need not all be at the same instruction.
  void warpBarrier(std::uint32_t members);

  const Instruction &current() const;
  /// Returns the position of the fragments, for the message of a deadlock.
  std::string standing() const;
  unsigned threads() const { return threadCount; }

private:
  static constexpr int runs = -1, waits = -2, waitsInWarp = -3;
  struct Fragment {
    std::uint32_t at = 0;
    std::uint32_t lanes = 0;
    int state = runs;          ///< or the barrier
    std::uint32_t members = 0; ///< of the bar.warp.sync
  };

  [[noreturn]] void unwritten(const Operand &operand) const;
  void setSpecials(const Program &program);
  /// Removes the executing lanes from the running fragment.
  void park(std::uint32_t at, int state, std::uint32_t members = 0);
  /// Selects the fragment to run: the one with the lowest program counter or, after a run without progress, the
  /// highest.
  bool choose(bool first);
  /// Merges fragments at the same instruction, and switches to one with a lower program counter.
  void settle();
  void openWarpBarriers();
  Bytes reachLocal(std::uint64_t address, unsigned bytes, unsigned lane);

  const Program &program;
  const std::byte *constants;
  const unsigned threadCount;
  std::vector<std::byte> rows;
  std::vector<std::uint32_t> defined, predicates;
  std::vector<std::byte> local;
  std::vector<std::uint8_t> localWritten;
  Fragment now;                 ///< the running fragment; no lanes: none
  std::vector<Fragment> others; ///< all other fragments
  std::uint32_t running = 0;    ///< index of the current instruction
  bool polled = false, usedUp = false, turned = false;
};

} // namespace kiln::ptx
