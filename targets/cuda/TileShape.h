// SPDX-License-Identifier: Apache-2.0
//
// The part of a contraction that a block of threads does, and the search space of its sizes.
#pragma once

#include "targets/cuda/ContractionMatch.h"
#include "targets/cuda/tile/Mma.h"

namespace kiln::cuda {

/// `bm` x `bn` sums of a block, `bk` elements of the depth in a stage of shared memory; `tm` x `tn` sums of a thread
/// or, with tensor cores, of a warp.
struct TileShape {
  int64_t bm, bn, bk, tm, tn, stages;
  std::optional<tile::MmaType> mma; // nothing: f32 on CUDA cores

  int64_t threads() const { return bm * bn / (tm * tn) * (mma ? 32 : 1); }
};

/// What tensor cores are to multiply in this product: f16 or bf16 if both inputs are that; tf32, which has all numbers
/// of those two, if f32 may be rounded to it. Nothing for all others.
std::optional<tile::MmaType> mmaTypeOf(const StepContext &context, const Contraction &contraction);

/// Whether a form of its own for some rows is worth its compilation: what is read for each row, in elements.
bool isLarge(const Contraction &contraction);
/// Bounds of rows below the kernel's for which there are other presets; ascending.
llvm::SmallVector<int64_t> tileBounds(const Contraction &contraction);

SearchSpace tileSpace(const StepContext &context, const Contraction &contraction);
TileShape tileShapeOf(std::optional<tile::MmaType> mma, const SchedulePoint &point);
BlockNeeds needsOf(const TileShape &shape);

} // namespace kiln::cuda
