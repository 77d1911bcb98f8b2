// SPDX-License-Identifier: Apache-2.0
//
// The tile of a contraction's input that a block copies to shared memory: a number of rows, and a slice of K for each
// pipeline stage. If K is contiguous in memory, a line of the tile is a row, else it is a K index. The layout of lines
// avoids bank conflicts:
//
//  - for CUDA cores, rows are padded;
//  - for tensor cores, chunks of 16 bytes are swizzled within a line, so that ldmatrix reads the same chunk of eight
//    neighbouring lines from different banks. ldmatrix cannot transpose tf32: those elements are read one by one from
//    padded lines.
#pragma once

#include "targets/cuda/gemm/TileShape.h"
#include "llvm/Support/MathExtras.h"

namespace kiln::cuda {

class InputTile {
public:
  InputTile(tile::Builder &b, ElementEmitter &emitter, const StageContext &context, const Contraction &contraction,
            bool isA, const TileShape &shape);

  /// Returns the size of one pipeline stage, in units of f32.
  int64_t size() const { return lines() * pitch() * bytes() / 4; }
  /// Returns the distance between lines, in elements.
  int64_t pitch() const { return line() + padding; }
  bool isKMajor() const { return input.isKMajor; }
  /// Whether elements are copied asynchronously.
  bool isAsync() const { return isCopied; }
  /// Whether ldmatrix can read it.
  bool isSwizzled() const { return swizzled; }
  /// Returns the offset of an element, in elements.
  tile::Value place(tile::Value line, tile::Value inLine) const;
  /// Returns the element type in shared memory: f32, but for tensor cores f16 and bf16 as they are in memory.
  tile::Type element() const { return type; }
  int64_t bytes() const { return type.getIntOrFloatBitWidth() / 8; }

  /// Must be called before the loop over K. `first`: the tile's first row; `kEnd`: the end of K; `loops`: with the
  /// batch indices set.
  void begin(tile::Value thread, tile::Value first, tile::Value kEnd, const tile::Values &loops);
  /// Fetches the slice that begins at `start` of K, with zeros out of bounds: copies an asynchronous input to `stage`,
  /// returns the values of another one.
  tile::Values fetch(tile::Value start, tile::Value stage);
  /// Writes those values to the stage.
  void put(const tile::Values &values, tile::Value stage);
  /// Whether a diagnostic has been emitted.
  bool isBroken() const { return broken; }

private:
  /// The elements that a thread copies at a time.
  struct Unit {
    tile::Value place, k; // offset in the tile, in elements, and K index
    tile::Value isThere;  // whether the row exists and the unit is part of the tile
    tile::Value isOfTile; // null: always true
    tile::Values loops;   // without those of K
  };
  int64_t line() const { return input.isKMajor ? kExtent : rows; } // in elements
  int64_t lines() const { return input.isKMajor ? rows : kExtent; }
  int64_t iterations(int64_t width) const { return llvm::divideCeil(rows * kExtent / width, threads); }
  Unit unitOf(int64_t width, tile::Value iteration);
  void copy(const Unit &unit, int64_t width, tile::Value start, tile::Value stage);
  void copyAll(tile::Value start, tile::Value stage);
  tile::Value isInside(const Unit &unit, tile::Value k);
  tile::Value read(const tile::Values &loops);

  tile::Builder &b;
  ElementEmitter &emitter;
  const Contraction &contraction;
  ContractionInput input;
  int64_t rows, kExtent, threads, padding;
  tile::Type type;
  bool swizzled, isCopied;
  tile::Value thread, first, rowCount, kEnd;
  tile::Values loops;             // with the batch indices
  tile::Value address, isAligned; // if asynchronous; isAligned null: always true
  int64_t width = 1;              // elements of a unit
  llvm::SmallVector<Unit> units;
  bool broken = false;
};

/// Whether cp.async can copy the input to shared memory: without conversion, at least four bytes at a time.
bool isCopied(const ContractionInput &input, std::optional<tile::MmaType> mma);

} // namespace kiln::cuda
