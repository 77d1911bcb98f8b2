// SPDX-License-Identifier: Apache-2.0
//
// The part of an attention that a block computes, and its shared-memory layout.
#pragma once

#include "targets/cuda/attention/HeadTile.h"
#include "targets/cuda/tile/Mma.h"

namespace kiln::cuda {

struct AttentionShape {
  int64_t rows, keys;                    // tile size
  int64_t rowsOfThread;                  // rows of the tile that a thread has
  int64_t parts;                         // warps that process disjoint keys; 1: all threads share a tile
  int64_t kvSplits;                      // blocks that share the keys of a row (split KV)
  int64_t headDim, channels;             // head dimensions: of queries and keys, and of values
  std::optional<tile::MmaType> mma = {}; // tensor-core type; nullopt: f32 on CUDA cores
  int64_t stages = 1;                    // pipeline stages of keys and values, for tensor cores

  int64_t threadsOfRow() const { return mma ? 4 : 8; }
  int64_t rowsOfWarp() const { return rowsOfThread * 32 / threadsOfRow(); }
  int64_t threadsOfGroup() const { return rows / rowsOfThread * threadsOfRow(); } // threads that share a tile
  int64_t threads() const { return threadsOfGroup() * parts; }

  int64_t bytes() const { return mma ? tile::bytesOf(*mma) : 4; } // size of an element in shared memory
  bool isHalf() const { return bytes() == 2; }
  int64_t paddedHeadDim() const { return int64_t(llvm::alignTo(headDim, mma ? tile::mmaKBytes / bytes() : 8)); }
  int64_t paddedChannels() const { return int64_t(llvm::alignTo(channels, mma ? 16 : 32)); }

  // Layouts in shared memory are padded against bank conflicts: on CUDA cores lines of queries and keys, so that eight
  // of them are in different banks; for tensor cores lines of f32 values, so that the same channels of four pairs of
  // lines are.
  LineShape queryLines() const { return factorLines(rows); }
  LineShape keyLines() const { return factorLines(keys); }
  LineShape valueLines() const {
    return isHalf() ? matrixLines(keys, paddedChannels(), 2) : longer(keys, paddedChannels(), mma ? 4 : 0);
  }
  /// On CUDA cores the attention weights pass through shared memory.
  LineShape weightLines() const { return longer(mma ? 0 : rows, keys, 8); }

  // Sizes are in units of f32.
  int64_t stageSize() const { return keyLines().size() + valueLines().size(); }
  int64_t threadGroupSize() const { return stages * stageSize() + weightLines().size(); }
  /// A partial result consists of maxima, sums, and outputs with a row pitch of outputPitch(). Tensor cores store four
  /// rows of accumulators at a time, in different banks by the padding.
  int64_t outputPitch() const { return paddedChannels() + (mma ? 8 : 0); }
  int64_t resultSize() const { return rows * (2 + outputPitch()); }
  int64_t sharedBytes() const {
    return 4 * std::max(queryLines().size() + parts * threadGroupSize(), parts * resultSize());
  }

private:
  LineShape factorLines(int64_t lines) const {
    return mma ? matrixLines(lines, paddedHeadDim(), bytes()) : longer(lines, paddedHeadDim(), 4);
  }
  static LineShape longer(int64_t lines, int64_t width, int64_t by) { return {lines, width, width + by}; }
};

} // namespace kiln::cuda
