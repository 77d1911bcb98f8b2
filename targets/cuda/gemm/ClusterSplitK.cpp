// SPDX-License-Identifier: Apache-2.0
//
// A unit is what a warp finishes at a time, 16 rows and 32 columns. It is stored in lane order, four times four
// accumulators of each lane, so that neither stores nor loads have bank conflicts. Units with neighbouring numbers are
// neighbouring columns and belong to different blocks, since there may be few rows.
#include "targets/cuda/gemm/ClusterSplitK.h"

#include "targets/cuda/tile/Shared.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

static constexpr int64_t unitFloats = WgmmaShape::warpRows * WgmmaShape::chunk;
static constexpr int64_t sumsOfUnit = unitFloats / 32; // per lane

void WgmmaSplit::begin(Value ofCluster, Value memory, Value address) {
  rank = ofCluster, shared = memory, start = address;
}

std::pair<Value, Value> WgmmaSplit::partOf(Value steps) {
  Value ofPart = b.div(b.add(steps, b.integer(shape.split - 1)), b.integer(shape.split));
  Value first = b.mul(rank, ofPart);
  Value rest = b.createOrFold<arith::MaxSIOp>(b.sub(steps, first), b.integer(0));
  return {first, b.createOrFold<arith::MinSIOp>(rest, ofPart)};
}

void WgmmaSplit::put(ValueRange sums, Value warp, Value lane) {
  Value place =
      tile::advance(b, shared, b.add(b.mul(warp, b.integer(chunks() * unitFloats)), b.mul(lane, b.integer(4))));
  for (int64_t i = 0; i < int64_t(sums.size()); i += 4) {
    const int64_t unit = i / sumsOfUnit, block = unit / chunks(), inBlock = unit % chunks();
    const int64_t at = (block * warps() * chunks() + inBlock) * unitFloats + i % sumsOfUnit * 32;
    tile::storeFour(b, {sums[i], sums[i + 1], sums[i + 2], sums[i + 3]}, tile::advance(b, place, at));
  }
}

/// All loads precede the first addition, so that they are in flight together.
Values WgmmaSplit::add(Value unit, Value lane) {
  Value place = b.add(start, b.add(b.mul(unit, b.integer(unitFloats * 4)), b.mul(lane, b.integer(16))));
  SmallVector<Values> parts(shape.split);
  for (auto [part, values] : llvm::enumerate(parts)) {
    Value there = tile::addressIn(b, place, b.integer(int64_t(part)));
    for (int64_t i = 0; i < sumsOfUnit / 4; ++i)
      values.append(tile::loadFourFrom(b, b.add(there, b.integer(i * 512))));
  }
  Values sums = parts.front();
  for (const Values &values : llvm::drop_begin(parts))
    for (auto [sum, value] : llvm::zip_equal(sums, values))
      sum = b.createOrFold<arith::AddFOp>(sum, value);
  return sums;
}

/// After the first barrier no warp reads stages any more, after the second one all sums have been written, and after
/// the third one all have been read.
LogicalResult WgmmaSplit::finish(const SumTile &tile, ValueRange sums, Value warp, Value lane) {
  tile::barrierAmong(b, b.integer(1), warps() * 32);
  put(sums, warp, lane);
  tile::clusterBarrier(b);
  const int64_t units = shape.bm / WgmmaShape::warpRows * chunks(), perIteration = shape.split * warps();
  Value first = b.add(rank, b.mul(warp, b.integer(shape.split)));
  Value iterations = b.div(b.sub(b.integer(units + perIteration - 1), first), b.integer(perIteration));
  LogicalResult result = success();
  b.loop(iterations, {}, [&](Value iteration, ValueRange) {
    Value unit = b.add(first, b.mul(iteration, b.integer(perIteration)));
    Value ofRows = b.div(unit, b.integer(chunks())), block = b.div(ofRows, b.integer(warps()));
    Value of = b.rem(ofRows, b.integer(warps())), group = b.div(of, b.integer(4)), inGroup = b.rem(of, b.integer(4));
    Value blockRow = b.mul(b.add(b.mul(group, b.integer(shape.blocksOfGroup())), block), b.integer(64));
    const SumTile ofUnit{tile.batch, b.add(tile.row, b.add(blockRow, b.mul(inGroup, b.integer(WgmmaShape::warpRows)))),
                         b.add(tile.column, b.mul(b.rem(unit, b.integer(chunks())), b.integer(WgmmaShape::chunk)))};
    b.ifThen(epilogue.isInside(ofUnit), [&] { result = epilogue.finish(ofUnit, add(unit, lane)); });
    return Values();
  });
  tile::orderBeforeCopies(b);
  tile::clusterBarrier(b);
  return result;
}

void WgmmaSplit::pass() {
  tile::clusterBarrier(b);
  tile::clusterBarrier(b);
}

} // namespace kiln::cuda
