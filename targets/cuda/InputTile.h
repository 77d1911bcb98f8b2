// SPDX-License-Identifier: Apache-2.0
//
// The part of a contraction's input that a block of threads works on, as it goes to shared memory: so many rows, and of
// the depth a little at a time. Where memory has the depth side by side, a row of the tile is a row there, a little
// longer, so that eight rows lie in different banks; else the tile has the rows side by side, too.
#pragma once

#include "targets/cuda/ContractionMatch.h"
#include "llvm/Support/MathExtras.h"

namespace kiln::cuda {

/// What a block does of a contraction, and how; `bm` x `bn` sums by tiles of `tm` x `tn` for each thread.
struct TileShape {
  int64_t bm, bn, bk, tm, tn, stages;

  int64_t threads() const { return bm * bn / (tm * tn); }
};

class InputTile {
public:
  InputTile(tile::Builder &b, Reader &reader, const StepContext &context, const Contraction &contraction, bool isA,
            const TileShape &shape);

  /// Of one stage of shared memory, in f32.
  int64_t size() const { return input.isAlongDepth ? rows * pitch() : depth * rows; }
  /// Between rows, or between steps of the depth, which are the others' neighbours.
  int64_t pitch() const { return input.isAlongDepth ? depth + 4 : rows; }
  bool isAlongDepth() const { return input.isAlongDepth; }
  /// Whether elements are copied behind the threads' backs.
  bool isAsync() const { return input.isPlain; }

  /// Before the loop over the depth: the tile's first row, and the numbers of the batch in `loops`.
  void begin(tile::Value thread, tile::Value first, const tile::Values &loops);
  /// Asks for what begins at `start` of the depth, zeros beyond the ends: copies to `stage` of an asynchronous input,
  /// the values of another one.
  tile::Values fetch(tile::Value start, tile::Value stage);
  /// Writes those values to the stage.
  void put(const tile::Values &values, tile::Value stage);
  /// Whether a diagnostic has been emitted.
  bool isBroken() const { return broken; }

private:
  /// Elements that a thread takes at a time.
  struct Unit {
    tile::Value place, depth; // in the tile: in f32 from its start, and the number of the depth
    tile::Value isThere;      // whether there is such a row, and this is the tile's; null: it is
    tile::Value isOfTile;     // null: it is
    tile::Values loops;       // without those of the depth
  };
  int64_t turns(int64_t width) const { return llvm::divideCeil(rows * depth / width, threads); }
  Unit unitOf(int64_t width, tile::Value turn);
  void copy(const Unit &unit, int64_t width, tile::Value start, tile::Value stage);
  void copyAll(tile::Value start, tile::Value stage);
  tile::Value isInside(const Unit &unit, tile::Value depth);

  tile::Builder &b;
  Reader &reader;
  const Contraction &contraction;
  ContractionInput input;
  int64_t rows, depth, threads;
  tile::Value thread, first, rowCount, depthCount;
  tile::Values loops;             // with the numbers of the batch
  tile::Value address, isAligned; // of a plain input; null: it is
  int64_t width = 1;              // of units
  llvm::SmallVector<Unit> units;
  bool broken = false;
};

} // namespace kiln::cuda
