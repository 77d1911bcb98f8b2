// SPDX-License-Identifier: Apache-2.0
//
// What the strategies of convolutions have in common.
#pragma once

#include "targets/halide/Placement.h"
#include "targets/halide/Structure.h"
#include "targets/halide/Translate.h"

namespace kiln::halide {

/// A contraction over channels and the window of an image, with a packed weight:
/// out[.., i, j, n] = sum over c, a, b of x[.., i s + a d, j s + b d, c] w[n, c, a, b]. Its reductions are c, a, b.
struct ImageContraction {
  Contraction shape;
  unsigned channelDim; // of the image

  mlir::linalg::GenericOp op() const { return shape.op; }
  mlir::Value image() const { return op()->getOperand(shape.a); }
  unsigned columns() const { return *shape.m; }
  unsigned rows() const { return shape.batch.front(); }
  int64_t channels() const { return staticExtent(op(), shape.reduction[0]); }
};

/// The kernel's one contraction, if it is one of an image and its weight's tiles are whole vectors of its sums.
std::optional<ImageContraction> findImageContraction(mlir::func::FuncOp kernel, const MachineModel &machine);

/// The image with its channels in blocks: [block, .., row, column, channel of the block]. Beyond the image, where full
/// tiles read, its last elements stand again.
Halide::Func copyImage(Translator &translator, const ImageContraction &of, int channelBlock, Halide::Var within,
                       Halide::Var block);

/// The sizes that a block of channels may have: whole vectors that divide the channels, or all of them.
std::vector<int64_t> channelBlocks(const ImageContraction &of, int lanes);

/// The outputs that a register tile may have: whole vectors that divide the weight's tiles.
std::vector<int64_t> tileOutputs(const ImageContraction &of, int lanes);

/// Numbers of rows of a block: powers of two, up to all.
std::vector<int64_t> blocksOfRows(int64_t height);

/// The columns of the window that share pixels with those of the next window: one if windows lie side by side.
int64_t sharedColumns(const ImageContraction &of);

/// The register tile, pixels (or what stands for them) by outputs, that wastes the fewest of the `width` pixels of a
/// row, keeps the multiply-adds busy and loads least. `columns` of the window are unrolled: pixels that several of them
/// read stay in registers, m + columns - 1 broadcasts, where a tile of sums alone would fill the registers and spill.
std::pair<int64_t, int64_t> findTile(const ImageContraction &of, llvm::ArrayRef<int64_t> outputs, int64_t width,
                                     int64_t columns, const MachineModel &machine);

/// Schedules the results around the contraction's: `store`, undefined if the kernel's output stores it, by
/// `scheduleStore`. A padded copy of the image is computed where it is read, if `isCopied`.
void scheduleResults(Translator &translator, const ImageContraction &of, bool isCopied, Halide::Func store,
                     const Exprs &extents, int lanes, llvm::function_ref<void(Halide::Func)> scheduleStore);

} // namespace kiln::halide
