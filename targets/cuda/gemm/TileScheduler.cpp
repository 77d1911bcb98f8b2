// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/gemm/TileScheduler.h"

namespace kiln::cuda {

using namespace mlir;

static constexpr int64_t rasterRows = 8; // row tiles before the next column tile

void TileScheduler::begin(ElementEmitter &emitter, const Contraction &contraction) {
  rowCount = emitter.extent(extentOf(contraction, contraction.rows));
  columnCount = emitter.extent(extentOf(contraction, contraction.columns));
  kExtent = emitter.extent(extentOf(contraction, contraction.reduction));
  auto pieces = [&](Value count, int64_t size) { return b.div(b.add(count, b.integer(size - 1)), b.integer(size)); };
  down = pieces(rowCount, shape.bm), across = pieces(columnCount, shape.bn);
  ofBatch = b.mul(down, across);
  steps = pieces(kExtent, shape.bk);
}

TileScheduler::Tile TileScheduler::tileOf(Value batch, Value inBatch) {
  Value ofGroup = b.mul(across, b.integer(rasterRows));
  Value first = b.mul(b.div(inBatch, ofGroup), b.integer(rasterRows)), inGroup = b.rem(inBatch, ofGroup);
  Value height = b.createOrFold<arith::MinSIOp>(b.sub(down, first), b.integer(rasterRows));
  return {batch, b.mul(b.add(first, b.rem(inGroup, height)), b.integer(shape.bm)),
          b.mul(b.div(inGroup, height), b.integer(shape.bn))};
}

AffineExpr tilesOf(const Contraction &contraction, const TileShape &shape) {
  return extentOf(contraction, contraction.batch) * extentOf(contraction, contraction.rows).ceilDiv(shape.bm) *
         extentOf(contraction, contraction.columns).ceilDiv(shape.bn);
}

} // namespace kiln::cuda
