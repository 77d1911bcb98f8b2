// SPDX-License-Identifier: Apache-2.0
//
// Keys or values of a head as they go to shared memory: so many lines, each of all channels with zeros behind them, for
// the threads that share them.
#pragma once

#include "targets/cuda/Reader.h"

namespace kiln::cuda {

/// Of shared memory, in f32: lines x width, `pitch` from line to line.
struct LineShape {
  int64_t lines, width, pitch;
  int64_t size() const { return lines * pitch; }
};

class HeadTile {
public:
  /// Operand `number` of the op, whose loops count lines and channels.
  HeadTile(tile::Builder &b, Reader &reader, const Placement &placement, mlir::linalg::GenericOp op, unsigned number,
           unsigned lineLoop, unsigned channelLoop, const LineShape &shape);

  /// Before the first fetch: which of the threads this is; the op's loops but for those two.
  void begin(tile::Value thread, int64_t threads, const tile::Values &loops);
  /// Copies lines from `first` on, zeros for those beyond the end: behind the threads' backs if they are f32 in memory,
  /// as a part of the thread's next group of copies.
  void fetch(tile::Value first, tile::Value to);
  /// Whether a diagnostic has been emitted.
  bool isBroken() const { return broken; }

private:
  /// Elements that a thread takes at a time.
  struct Unit {
    tile::Value place, line, channel; // in the tile
    tile::Value isOfTile;             // null: it is
  };
  /// `together`: a multiple of which the number of turns is.
  Unit unitOf(int64_t unitWidth, tile::Value turn, int64_t together = 1);
  void ifOfTile(const Unit &unit, llvm::function_ref<void()> body);
  int64_t turns(int64_t unitWidth) const;
  void copyUnits(int64_t unitWidth, tile::Value first, tile::Value to);
  void copy(const Unit &unit, int64_t unitWidth, tile::Value first, tile::Value to);
  void readAll(tile::Value first, tile::Value to);
  tile::Values at(const Unit &unit, tile::Value line) const;
  tile::Value isInside(const Unit &unit, tile::Value line);

  tile::Builder &b;
  Reader &reader;
  mlir::linalg::GenericOp op;
  unsigned number, lineLoop, channelLoop;
  LineShape shape;
  bool isPlain;         // f32 as they lie in memory
  bool isInFours;       // plain, and four channels start at multiples of four elements
  bool isSureAligned;   // and those at multiples of 16 bytes: else that depends on the address
  bool isAlongChannels; // channels lie side by side, not lines
  int64_t threads = 0;
  tile::Value thread, lineCount, channelCount, address, isAligned;
  tile::Values loops;
  bool broken = false;
};

} // namespace kiln::cuda
