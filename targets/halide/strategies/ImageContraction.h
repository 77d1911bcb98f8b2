// SPDX-License-Identifier: Apache-2.0
//
// What the convolution strategies share.
#pragma once

#include "targets/halide/Structure.h"
#include "targets/halide/strategies/Placement.h"
#include "targets/halide/translate/Translator.h"

namespace kiln::halide {

/// A contraction over channels and the window of an image, with a packed weight:
/// out[.., i, j, n] = sum over c, a, b of x[.., i s + a d, j s + b d, c] w[n, c, a, b]. Its reductions are c, a, b.
struct ImageContraction {
  Contraction shape;
  unsigned channelDim; // dimension of the image

  mlir::linalg::GenericOp op() const { return shape.op; }
  mlir::Value image() const { return op()->getOperand(shape.a); }
  unsigned columns() const { return *shape.m; }
  unsigned rows() const { return shape.outer.front(); }
  int64_t channels() const { return staticExtent(op(), shape.reduction[0]); }
};

/// Returns the kernel's only contraction, if it is one over an image and its weight's tiles are whole vectors of the
/// sum type.
std::optional<ImageContraction> findImageContraction(mlir::func::FuncOp kernel, const MachineModel &machine);

/// Copies the image with its channels in blocks: [block, .., row, column, channel of the block]. Reads of full tiles
/// past the end of the image get its last elements again.
Halide::Func copyImage(Translator &translator, const ImageContraction &of, int channelBlock, Halide::Var within,
                       Halide::Var block);

/// Returns the legal sizes of a block of channels: whole vectors that divide the channels, or all channels.
std::vector<int64_t> channelBlocks(const ImageContraction &of, int lanes);

/// Returns the legal numbers of outputs of a register tile: whole vectors that divide the weight's tiles.
std::vector<int64_t> tileOutputs(const ImageContraction &of, int lanes);

/// Returns the legal numbers of rows of a block: powers of two, up to all rows.
std::vector<int64_t> blocksOfRows(int64_t height);

/// Returns the number of columns of the window that share pixels with the next window: one if windows do not overlap.
int64_t sharedColumns(const ImageContraction &of);

/// Returns the register tile, pixels (or what stands for them) by outputs, that wastes the fewest of the `width` pixels
/// of a row, keeps the multiply-add units busy and loads least. `columns` of the window are unrolled: pixels that
/// several of them read stay in registers as m + columns - 1 broadcasts, where a tile that fills the registers with
/// accumulators would spill.
std::pair<int64_t, int64_t> findTile(const ImageContraction &of, llvm::ArrayRef<int64_t> outputs, int64_t width,
                                     int64_t columns, const MachineModel &machine);

/// Schedules the results of a kernel. `scheduleStore` schedules `store`, or the kernel's outputs if `store` is
/// undefined. If `isCopied`, the stage that computes the padded image is inlined into its copy.
void scheduleResults(Translator &translator, const ImageContraction &of, bool isCopied, Halide::Func store,
                     const Exprs &extents, int lanes, llvm::function_ref<void(Halide::Func)> scheduleStore);

} // namespace kiln::halide
