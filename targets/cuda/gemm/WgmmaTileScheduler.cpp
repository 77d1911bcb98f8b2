// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/gemm/WgmmaTileScheduler.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

void WgmmaTiles::begin(ElementEmitter &emitter, const Contraction &contraction) {
  auto tiles = [&](Value count, int64_t size) { return b.div(b.add(count, b.integer(size - 1)), b.integer(size)); };
  rank = b.rem(b.blockId(), b.integer(shape.blocks()));
  rowCount = emitter.extent(extentOf(contraction, contraction.rows));
  columnCount = emitter.extent(extentOf(contraction, contraction.columns));
  batchCount = emitter.extent(extentOf(contraction, contraction.batch));
  down = tiles(rowCount, clusterRows()), across = tiles(columnCount, shape.bn);
}

/// Neighbouring numbers share inputs: they iterate over some row tiles before the next column tile.
SumTile WgmmaTiles::tileOf(Value number) {
  Value ofBatch = b.mul(down, across), inBatch = b.rem(number, ofBatch);
  Value ofGroup = b.mul(across, b.integer(shape.raster)), inGroup = b.rem(inBatch, ofGroup);
  Value first = b.mul(b.div(inBatch, ofGroup), b.integer(shape.raster));
  Value height = b.createOrFold<arith::MinSIOp>(b.sub(down, first), b.integer(shape.raster));
  Value row = b.mul(b.add(first, b.rem(inGroup, height)), b.integer(clusterRows()));
  return {b.div(number, ofBatch), b.add(row, b.mul(rank, b.integer(shape.cluster > 1 ? shape.bm : 0))),
          b.mul(b.div(inGroup, height), b.integer(shape.bn))};
}

/// The tiles of a cluster are as far apart as there are clusters. Its blocks process them in lockstep, even if one of
/// the blocks has a tile beyond the last row.
Values WgmmaTiles::each(ValueRange carried, Body body) {
  Value cluster = b.div(b.blockId(), b.integer(shape.blocks()));
  Value clusters = b.div(tile::gridSize(b), b.integer(shape.blocks()));
  Value all = b.mul(batchCount, b.mul(down, across));
  Value mine = b.div(b.add(b.sub(all, cluster), b.sub(clusters, b.integer(1))), clusters);
  return b.loop(mine, carried, [&](Value iteration, ValueRange values) {
    return body(tileOf(b.add(cluster, b.mul(iteration, clusters))), values);
  });
}

} // namespace kiln::cuda
