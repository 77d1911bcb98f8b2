// SPDX-License-Identifier: Apache-2.0
//
// The tile of a contraction that a block computes, and the search space of its sizes.
#pragma once

#include "targets/cuda/gemm/Match.h"
#include "targets/cuda/tile/Mma.h"

namespace kiln::cuda {

/// A block has `bm` x `bn` accumulators and `bk` elements of K in a pipeline stage; a thread or, with tensor cores, a
/// warp has `tm` x `tn` accumulators.
struct TileShape {
  int64_t bm, bn, bk, tm, tn, stages;
  std::optional<tile::MmaType> mma; // tensor-core type; nullopt: f32 on CUDA cores

  int64_t threads() const { return bm * bn / (tm * tn) * (mma ? 32 : 1); }
};

/// Returns the tensor-core type of this contraction: f16 or bf16 if both inputs have that type; tf32, which represents
/// all numbers of those two, if f32 may be rounded to it. Returns nullopt otherwise.
std::optional<tile::MmaType> mmaTypeOf(const StageContext &context, const Contraction &contraction);

/// Whether the weight, all elements of which are read for each row, is large enough for shape-specialised variants to
/// be worth their compilation.
bool isLarge(const Contraction &contraction);
/// Returns bounds of rows below the kernel's own for which the default configuration differs; ascending.
llvm::SmallVector<int64_t> tileBounds(const Contraction &contraction);

SearchSpace tileSpace(const StageContext &context, const Contraction &contraction);
TileShape tileShapeOf(std::optional<tile::MmaType> mma, const ScheduleConfig &config);
BlockNeeds needsOf(const TileShape &shape);

} // namespace kiln::cuda
