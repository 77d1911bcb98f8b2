// SPDX-License-Identifier: Apache-2.0
//
// How a product is divided in its form for capability 9.0, and the search space of that.
#pragma once

#include "targets/cuda/WgmmaMatch.h"

namespace kiln::cuda {

/// A block has `bm` x `bn` sums at a time: each of `groups` of four warps multiplies bm / groups of the rows, by 64.
struct WgmmaShape {
  static constexpr int64_t rowBytes = 128;             // of a tile of an input in shared memory
  static constexpr int64_t blockBytes = 64 * rowBytes; // of 64 rows, or of 64 steps of the depth
  static constexpr int64_t warpRows = 16, chunk = 32;  // sums that a warp finishes at a time
  static constexpr int64_t chunkPitch = chunk + 8;     // f32: rows that a warp stores to lie in different banks

  int64_t bm, bn, groups;
  int64_t stages;  // of 128 bytes of the depth
  int64_t raster;  // tiles of rows that neighbours go through before the next tile of columns
  int64_t cluster; // blocks whose tiles lie one below the other: each copies its part of b to all of them
  int64_t split;   // blocks that share the depth of a tile

  int64_t blocks() const { return cluster * split; }           // that are launched as a cluster
  int64_t blocksOfGroup() const { return bm / (64 * groups); } // of 64 rows
  int64_t sumsOfThread() const { return bm * bn / (128 * groups); }
  int64_t threads() const { return (groups + 1) * 128; }
  int64_t stageBytes() const { return (bm + bn) * rowBytes; }
  int64_t stagingAt() const { return stages * stageBytes(); }
  int64_t barriersAt() const { return stagingAt() + groups * 4 * warpRows * chunkPitch * 4; }
  int64_t sharedBytes() const { return barriersAt() + stages * 16; }
};

/// Whether the contraction has this form.
bool hasWgmma(const StepContext &context, const Contraction &contraction);

/// Bounds of rows below the kernel's for which a form of the kernel with a tile of its own is so much faster that it is
/// worth being compiled, by the same estimate that presets follow from; ascending.
llvm::SmallVector<int64_t> wgmmaBounds(const StepContext &context, const Contraction &contraction);

/// The parameters of the form; none if the contraction does not have it. On GPUs of other capabilities than 9.0, which
/// launch the plain form, they are without effect: a point is legal there whatever values they have.
SearchSpace wgmmaSpace(const StepContext &context, const Contraction &contraction);
WgmmaShape wgmmaShapeOf(const SchedulePoint &point);
BlockNeeds needsOf(const WgmmaShape &shape);

} // namespace kiln::cuda
