// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/WgmmaEpilogue.h"

#include "targets/cuda/tile/Shared.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

static constexpr int64_t warpRows = WgmmaShape::warpRows, chunk = WgmmaShape::chunk, pitch = WgmmaShape::chunkPitch;
static constexpr int64_t elementsAtOnce = 4; // that a lane finishes at a time

void WgmmaEpilogue::begin(Value ofRows, Value ofColumns, Value ofWarp, Value memory) {
  rowCount = ofRows, columnCount = ofColumns, lane = ofWarp, staging = memory;
}

/// The sums of a warp's columns from `first` on, as [row][column].
void WgmmaEpilogue::putChunk(ValueRange sums, int64_t first) {
  Value row = b.div(lane, b.integer(4)), column = b.mul(b.rem(lane, b.integer(4)), b.integer(2));
  Value place = tile::advance(b, staging, b.add(b.mul(row, b.integer(pitch)), column));
  for (int64_t j = 0; j < chunk / 8; ++j)
    for (int64_t i = 0; i < 4; ++i)
      tile::storeOne(b, sums[(first / 8 + j) * 4 + i], tile::advance(b, place, j * 8 + i / 2 * 8 * pitch + i % 2));
}

/// A lane has a column.
LogicalResult WgmmaEpilogue::finishChunk(const SumTile &tile, int64_t first) {
  Value column = b.add(tile.column, b.add(lane, b.integer(first)));
  Value isColumn = b.isBelow(column, columnCount);
  linalg::GenericOp op = contraction.op;
  const unsigned numLoops = op.getNumLoops();
  LogicalResult result = success();
  b.loop(b.integer(warpRows / elementsAtOnce), {}, [&](Value turn, ValueRange) {
    Values inside;
    SmallVector<Values> at, results;
    for (int64_t i = 0; i < elementsAtOnce && succeeded(result); ++i) {
      Value rowOfWarp = b.add(b.mul(turn, b.integer(elementsAtOnce)), b.integer(i));
      Value sum = tile::loadOne(b, tile::advance(b, staging, b.add(b.mul(rowOfWarp, b.integer(pitch)), lane)));
      Value row = b.add(tile.row, rowOfWarp);
      inside.push_back(b.both(b.isBelow(row, rowCount), isColumn));
      at.emplace_back(numLoops);
      splitIndex(b, reader, contraction, contraction.batch, tile.batch, at.back());
      splitIndex(b, reader, contraction, contraction.rows, b.clamp(row, rowCount), at.back());
      splitIndex(b, reader, contraction, contraction.columns, b.clamp(column, columnCount), at.back());
      results.push_back(finishSum(reader, context, contraction, at.back(), sum));
      result = success(!results.back().empty());
    }
    for (int64_t i = 0; i < elementsAtOnce && succeeded(result); ++i)
      b.ifThen(inside[i], [&] { storeResults(reader, context, contraction, at[i], results[i]); });
    return Values();
  });
  return result;
}

LogicalResult WgmmaEpilogue::finish(const SumTile &tile, ValueRange sums) {
  LogicalResult result = success();
  for (int64_t first = 0; first < int64_t(sums.size()) * 2 && succeeded(result); first += chunk) {
    Value isRow = b.isBelow(tile.row, rowCount); // the warp's first one
    b.ifThen(b.both(isRow, b.isBelow(b.add(tile.column, b.integer(first)), columnCount)), [&] {
      putChunk(sums, first);
      tile::syncWarp(b);
      result = finishChunk(tile, first);
      tile::syncWarp(b);
    });
  }
  return result;
}

} // namespace kiln::cuda
