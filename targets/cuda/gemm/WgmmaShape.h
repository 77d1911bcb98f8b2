// SPDX-License-Identifier: Apache-2.0
//
// The tiling of a contraction's TMA variant for capability 9.0, and its search space.
#pragma once

#include "targets/cuda/gemm/WgmmaMatch.h"

namespace kiln::cuda {

/// A block has `bm` x `bn` accumulators at a time: each of `groups` consumer warpgroups multiplies bm / groups rows,
/// 64 at a time.
struct WgmmaShape {
  static constexpr int64_t rowBytes = 128;             // row of an input tile in shared memory
  static constexpr int64_t blockBytes = 64 * rowBytes; // 64 rows, or 64 K indices
  static constexpr int64_t warpRows = 16, chunk = 32;  // accumulators that a warp finishes at a time
  static constexpr int64_t chunkPitch = chunk + 8;     // in f32; padded against bank conflicts of a warp's stores

  int64_t bm, bn, groups;
  int64_t stages;  // pipeline stages, each with 128 bytes of K
  int64_t raster;  // row tiles that neighbouring numbers iterate over before the next column tile
  int64_t cluster; // blocks with adjacent row tiles: each multicasts its part of b to all of them
  int64_t split;   // split-K: blocks that share the K of a tile

  int64_t blocks() const { return cluster * split; }           // size of a launched cluster
  int64_t blocksOfGroup() const { return bm / (64 * groups); } // in units of 64 rows
  int64_t sumsOfThread() const { return bm * bn / (128 * groups); }
  int64_t threads() const { return (groups + 1) * 128; }
  int64_t stageBytes() const { return (bm + bn) * rowBytes; }
  int64_t stagingAt() const { return stages * stageBytes(); }
  int64_t barriersAt() const { return stagingAt() + groups * 4 * warpRows * chunkPitch * 4; }
  int64_t sharedBytes() const { return barriersAt() + stages * 16; }
};

/// Whether the contraction has a TMA variant.
bool hasWgmma(const StageContext &context, const Contraction &contraction);

/// Returns bounds of rows below the kernel's own for which a shape-specialised variant with a different tile is so
/// much faster that it is worth its compilation, by the estimate that chooses the default configuration; ascending.
llvm::SmallVector<int64_t> wgmmaBounds(const StageContext &context, const Contraction &contraction);

/// Returns the parameters of the TMA variant; none if the contraction does not have one. They have no effect on GPUs
/// of other capabilities than 9.0, which launch the base variant: there a configuration is legal whatever values they
/// have.
SearchSpace wgmmaSpace(const StageContext &context, const Contraction &contraction);
WgmmaShape wgmmaShapeOf(const ScheduleConfig &config);
BlockNeeds needsOf(const WgmmaShape &shape);

} // namespace kiln::cuda
