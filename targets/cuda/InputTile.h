// SPDX-License-Identifier: Apache-2.0
//
// The part of a contraction's input that a block of threads works on, as it goes to shared memory: so many rows, and of
// the depth a little at a time. Where memory has the depth side by side, a line of the tile is a row, else it is a step
// of the depth. Lines are laid out so that what a warp reads at once lies in different banks:
//
//  - for CUDA cores, rows are a little longer than they need be;
//  - for tensor cores, chunks of 16 bytes change places within a line, so that ldmatrix finds the same chunk of eight
//    neighbouring lines in different banks. It cannot transpose tf32: those are read one by one from longer lines.
#pragma once

#include "targets/cuda/TileShape.h"
#include "llvm/Support/MathExtras.h"

namespace kiln::cuda {

class InputTile {
public:
  InputTile(tile::Builder &b, Reader &reader, const StepContext &context, const Contraction &contraction, bool isA,
            const TileShape &shape);

  /// Of one stage of shared memory, in f32.
  int64_t size() const { return lines() * pitch() * bytes() / 4; }
  /// Between lines, in elements.
  int64_t pitch() const { return line() + padding; }
  bool isAlongDepth() const { return input.isAlongDepth; }
  /// Whether elements are copied behind the threads' backs.
  bool isAsync() const { return isCopied; }
  /// Whether ldmatrix can read it.
  bool isSwizzled() const { return swizzled; }
  /// Where an element is, in elements from the start.
  tile::Value place(tile::Value line, tile::Value inLine) const;
  /// An element in shared memory: f32, but for tensor cores f16 and bf16 as they are.
  tile::Type element() const { return type; }
  int64_t bytes() const { return type.getIntOrFloatBitWidth() / 8; }

  /// Before the loop over the depth: the tile's first row, the end of the depth, the numbers of the batch in `loops`.
  void begin(tile::Value thread, tile::Value first, tile::Value depthEnd, const tile::Values &loops);
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
    tile::Value place, depth; // in the tile: in elements from its start, and the number of the depth
    tile::Value isThere;      // whether there is such a row, and this is the tile's; null: it is
    tile::Value isOfTile;     // null: it is
    tile::Values loops;       // without those of the depth
  };
  int64_t line() const { return input.isAlongDepth ? depth : rows; } // elements
  int64_t lines() const { return input.isAlongDepth ? rows : depth; }
  int64_t turns(int64_t width) const { return llvm::divideCeil(rows * depth / width, threads); }
  Unit unitOf(int64_t width, tile::Value turn);
  void copy(const Unit &unit, int64_t width, tile::Value start, tile::Value stage);
  void copyAll(tile::Value start, tile::Value stage);
  tile::Value isInside(const Unit &unit, tile::Value depth);
  tile::Value read(const tile::Values &loops);

  tile::Builder &b;
  Reader &reader;
  const Contraction &contraction;
  ContractionInput input;
  int64_t rows, depth, threads, padding;
  tile::Type type;
  bool swizzled, isCopied;
  tile::Value thread, first, rowCount, depthEnd;
  tile::Values loops;             // with the numbers of the batch
  tile::Value address, isAligned; // of an asynchronous input; null: it is
  int64_t width = 1;              // of units
  llvm::SmallVector<Unit> units;
  bool broken = false;
};

/// Whether cp.async takes the input to shared memory: at least four bytes at a time, as they are.
bool isCopied(const ContractionInput &input, std::optional<tile::MmaType> mma);

} // namespace kiln::cuda
