// SPDX-License-Identifier: Apache-2.0
//
// What a block does of an attention, and how its shared memory is laid out.
#pragma once

#include "targets/cuda/HeadTile.h"
#include "targets/cuda/tile/Mma.h"

namespace kiln::cuda {

struct AttentionShape {
  int64_t rows, keys;                    // of a tile
  int64_t rowsOfThread;                  // of the tile's rows
  int64_t parts;                         // warps that take keys of their own; 1: all threads share a tile
  int64_t splits;                        // blocks that share the keys of a row
  int64_t depth, channels;               // of a head
  std::optional<tile::MmaType> mma = {}; // what tensor cores multiply; nothing: f32 on CUDA cores
  int64_t stages = 1;                    // tiles of keys and values, for tensor cores

  int64_t threadsOfRow() const { return mma ? 4 : 8; }
  int64_t rowsOfWarp() const { return rowsOfThread * 32 / threadsOfRow(); }
  int64_t teamThreads() const { return rows / rowsOfThread * threadsOfRow(); } // that share a tile
  int64_t threads() const { return teamThreads() * parts; }

  int64_t bytes() const { return mma ? tile::bytesOf(*mma) : 4; } // of an element in shared memory
  bool isShort() const { return bytes() == 2; }
  int64_t paddedDepth() const { return int64_t(llvm::alignTo(depth, mma ? tile::mmaDepthBytes / bytes() : 8)); }
  int64_t paddedChannels() const { return int64_t(llvm::alignTo(channels, mma ? 16 : 32)); }

  // In shared memory. On CUDA cores lines of queries and keys are a little longer, so that eight of them lie in
  // different banks; for tensor cores lines of f32 values are, so that the same channels of four pairs of lines do.
  LineShape queryLines() const { return factorLines(rows); }
  LineShape keyLines() const { return factorLines(keys); }
  LineShape valueLines() const {
    return isShort() ? matrixLines(keys, paddedChannels(), 2) : longer(keys, paddedChannels(), mma ? 4 : 0);
  }
  /// On CUDA cores weights go through shared memory.
  LineShape weightLines() const { return longer(mma ? 0 : rows, keys, 8); }

  // Sizes in f32.
  int64_t stageSize() const { return keyLines().size() + valueLines().size(); }
  int64_t teamSize() const { return stages * stageSize() + weightLines().size(); }
  /// Of a part's result: maxima, sums, and outputs with so many f32 from row to row. Of tensor cores' sums four rows
  /// are stored at a time.
  int64_t outputPitch() const { return paddedChannels() + (mma ? 8 : 0); }
  int64_t resultSize() const { return rows * (2 + outputPitch()); }
  int64_t sharedBytes() const { return 4 * std::max(queryLines().size() + parts * teamSize(), parts * resultSize()); }

private:
  LineShape factorLines(int64_t lines) const {
    return mma ? matrixLines(lines, paddedDepth(), bytes()) : longer(lines, paddedDepth(), 4);
  }
  static LineShape longer(int64_t lines, int64_t width, int64_t by) { return {lines, width, width + by}; }
};

} // namespace kiln::cuda
