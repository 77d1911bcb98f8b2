// SPDX-License-Identifier: Apache-2.0
//
// 32 threads that run together. Where they take different ways they become fragments, each a program counter and the
// lanes that are there. The fragment that is least far in the text runs, and fragments that meet become one: with
// blocks in the order LLVM gives them that is reconvergence. An instruction that needs other lanes (.sync) keeps its
// fragment until they come.
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

/// constant: a read of what no kernel writes. barrier: an mbarrier's own access, atomic and nothing that another thread
/// waits for by itself. copy: a write by an asynchronous copy, whose races its caller looks for.
enum class Access : unsigned char { read, constant, write, atomic, barrier, copy };

/// Bytes of shared memory that cp.async will write.
struct PendingCopy {
  std::uint32_t offset, bytes; ///< in the block's shared memory
  std::array<std::byte, 16> data;
  unsigned line;
};
struct CopyGroups {
  std::vector<std::vector<PendingCopy>> committed; ///< oldest first
  std::vector<PendingCopy> open;
};

/// 16 bytes of shared memory that a wgmma reads until it is waited for. Nobody may write them before, and who writes
/// them later must know of the wait.
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
  /// Runs up to `instructions`. blocked: no fragment can go on by itself; waiting: a fragment polls something in vain.
  Turn run(std::uint64_t instructions);

  // For handlers.
  Block &block;
  const unsigned index;        ///< in the block
  const unsigned actor;        ///< in the cluster
  std::uint32_t executing = 0; ///< the lanes that the instruction is for
  std::uint32_t alive = 0;     ///< the lanes that have not exited
  VectorClock clock;
  std::vector<CopyGroups> copies; ///< of each lane; empty before the first one
  MatrixReads matrixReads;
  std::array<std::uint64_t, warpSize> clusterPhase{}; ///< that a lane has arrived in, plus one
  std::uint32_t waited = 0;                           ///< the lanes that know of the end of the kernels before
  std::uint64_t instructions = 0, threadInstructions = 0;

  /// The values of a register or constant, after a check that they have been written in the lanes that execute.
  template <class T> const T *read(const Operand &operand) const {
    if (operand.number < 0)
      return reinterpret_cast<const T *>(constants + operand.row);
    if (executing & ~defined[static_cast<unsigned>(operand.number)])
      unwritten(operand);
    return reinterpret_cast<const T *>(rows.data() + operand.row);
  }
  /// Without the check, for what only moves values.
  template <class T> const T *peek(const Operand &operand) const {
    return reinterpret_cast<const T *>((operand.number < 0 ? constants : rows.data()) + operand.row);
  }
  std::uint32_t definedLanes(const Operand &operand) const {
    return operand.number < 0 ? allLanes : defined[static_cast<unsigned>(operand.number)];
  }
  /// The row to write; the lanes that execute count as written.
  template <class T> T *write(const Operand &operand) {
    defined[static_cast<unsigned>(operand.number)] |= executing;
    return reinterpret_cast<T *>(rows.data() + operand.row);
  }
  void undefine(const Operand &operand, std::uint32_t lanes) {
    defined[static_cast<unsigned>(operand.number)] &= ~lanes;
  }
  /// Writes the lanes that execute.
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

  /// The address of each lane; `operand` is a register of 32 or 64 bits, or a constant.
  std::uint64_t address(const Operand &operand, const Instruction &instruction, unsigned lane) const;
  /// Bytes that one lane reaches, after all checks. For a write `values` tells same-valued ones from others.
  Bytes reach(Space space, std::uint64_t address, unsigned bytes, unsigned alignment, Access access, unsigned lane,
              const void *values = nullptr);
  Accessor accessor(unsigned lane) const;

  /// False where lanes of `needed` are not here: the fragment then waits for them and the instruction runs again.
  bool together(std::uint32_t needed);
  /// For .aligned instructions: all lanes that live.
  bool together() { return together(alive); }
  void jump(std::uint32_t target);
  /// Lanes that execute go to different places.
  void jumpEach(const std::uint32_t (&targets)[warpSize]);
  void exit();
  /// The lanes that execute stay behind this instruction until release(barrier).
  void stopAt(int barrier);
  /// Whether there were any.
  bool release(int barrier);
  /// Lets other warps run: something that was polled has not happened.
  void poll() { polled = true; }
  /// bar.warp.sync of `members`, which need not all be at the same instruction.
  void warpBarrier(std::uint32_t members);

  const Instruction &current() const;
  /// Where the fragments stand, for the words of a deadlock.
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
  /// Takes the lanes that execute out of the fragment that runs.
  void park(std::uint32_t at, int state, std::uint32_t members = 0);
  /// The fragment to run: the first one in the text, or, for a turn, the last one.
  bool choose(bool first);
  /// Joins fragments that meet, and goes back to one that is behind.
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
  Fragment now;                 ///< the one that runs; no lanes: none
  std::vector<Fragment> others; ///< the rest
  std::uint32_t running = 0;    ///< index of the present instruction
  bool polled = false, usedUp = false, turned = false;
};

} // namespace kiln::ptx
