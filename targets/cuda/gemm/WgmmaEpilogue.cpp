// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/gemm/WgmmaEpilogue.h"

#include "targets/cuda/tile/Shared.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

static constexpr int64_t warpRows = WgmmaShape::warpRows, chunk = WgmmaShape::chunk, pitch = WgmmaShape::chunkPitch;
static constexpr int64_t elementsAtOnce = 4; // that a lane finishes at a time, if they are not neighbours

/// Loads of several rows wait for shared memory together, unless the epilogue has so many ops that the code would
/// become large.
static int64_t rowsAtOnce(const StageContext &context, const Contraction &contraction) {
  constexpr int64_t few = 8;
  int64_t ops = 0;
  func::FuncOp kernel = context.kernel;
  kernel.walk([&](linalg::GenericOp op) {
    if (op != contraction.op)
      ops += int64_t(op.getBlock()->getOperations().size()) - 1;
  });
  return ops <= few ? 4 : 1;
}

WgmmaEpilogue::WgmmaEpilogue(tile::Builder &b, ElementEmitter &emitter, const StageContext &context,
                             const Contraction &contraction)
    : b(b), emitter(emitter), context(context), contraction(contraction),
      together(columnsTogether(context, contraction)), atOnce(rowsAtOnce(context, contraction)) {}

void WgmmaEpilogue::begin(Value ofRows, Value ofColumns, Value ofWarp, Value memory) {
  rowCount = ofRows, columnCount = ofColumns, lane = ofWarp, staging = memory;
  if (together > 1)
    aligned = areAligned(b, emitter, context, contraction, together);
}

/// Writes the accumulators of a warp's columns from `first` on to shared memory, as [row][column].
void WgmmaEpilogue::putChunk(ValueRange sums, int64_t first) {
  Value row = b.div(lane, b.integer(4)), column = b.mul(b.rem(lane, b.integer(4)), b.integer(2));
  Value place = tile::advance(b, staging, b.add(b.mul(row, b.integer(pitch)), column));
  for (int64_t j = 0; j < chunk / 8; ++j)
    for (int64_t i = 0; i < 2; ++i) {
      const int64_t sum = (first / 8 + j) * 4 + 2 * i;
      tile::storeVector(b, {sums[sum], sums[sum + 1]}, tile::advance(b, place, j * 8 + i * 8 * pitch));
    }
}

/// Returns the loops of the contraction at a row and a column that exist.
Values WgmmaEpilogue::loopsAt(Value batch, Value row, Value column) {
  linalg::GenericOp op = contraction.op;
  Values loops(op.getNumLoops());
  splitIndex(b, emitter, contraction, contraction.batch, batch, loops);
  splitIndex(b, emitter, contraction, contraction.rows, row, loops);
  splitIndex(b, emitter, contraction, contraction.columns, column, loops);
  return loops;
}

/// A lane has one column.
LogicalResult WgmmaEpilogue::finishElements(const SumTile &tile) {
  Value column = b.add(tile.column, lane), isColumn = b.isBelow(column, columnCount);
  LogicalResult result = success();
  b.loop(b.integer(warpRows / elementsAtOnce), {}, [&](Value iteration, ValueRange) {
    Values inside;
    SmallVector<Values> at, results;
    for (int64_t i = 0; i < elementsAtOnce && succeeded(result); ++i) {
      Value rowOfWarp = b.add(b.mul(iteration, b.integer(elementsAtOnce)), b.integer(i));
      Value sum = tile::loadOne(b, tile::advance(b, staging, b.add(b.mul(rowOfWarp, b.integer(pitch)), lane)));
      Value row = b.add(tile.row, rowOfWarp);
      inside.push_back(b.both(b.isBelow(row, rowCount), isColumn));
      at.push_back(loopsAt(tile.batch, b.clamp(row, rowCount), b.clamp(column, columnCount)));
      results.push_back(finishSum(emitter, context, contraction, at.back(), sum));
      result = success(!results.back().empty());
    }
    for (int64_t i = 0; i < elementsAtOnce && succeeded(result); ++i)
      b.ifThen(inside[i], [&] { storeResults(emitter, context, contraction, at[i], results[i]); });
    return Values();
  });
  return result;
}

/// A lane has neighbouring columns, which differ only in the last loop; that number of rows is stored at a time. All
/// of them are within the result, and their addresses are aligned.
LogicalResult WgmmaEpilogue::finishNeighbours(const SumTile &tile) {
  Value rowOfLane = b.div(lane, b.integer(chunk / together));
  Value columnOfLane = b.mul(b.rem(lane, b.integer(chunk / together)), b.integer(together));
  LogicalResult result = success();
  b.loop(b.integer(warpRows / (atOnce * together)), {}, [&](Value iteration, ValueRange) {
    SmallVector<Values> at, results; // [row * together + column]
    for (int64_t i = 0; i < atOnce; ++i) {
      Value row =
          b.add(b.mul(b.add(b.mul(iteration, b.integer(atOnce)), b.integer(i)), b.integer(together)), rowOfLane);
      Value place = tile::advance(b, staging, b.add(b.mul(row, b.integer(pitch)), columnOfLane));
      const Values sums = tile::loadVector(b, b.getF32Type(), together, place);
      const size_t first = at.size();
      at.append(size_t(together), loopsAt(tile.batch, b.add(tile.row, row), b.add(tile.column, columnOfLane)));
      for (int64_t j = 0; j < together; ++j) {
        Value &column = at[first + size_t(j)][contraction.columns.back()];
        column = b.add(column, b.integer(j));
      }
      loadTogether(emitter, context, contraction, ArrayRef(at).drop_front(first));
      for (auto [loops, sum] : llvm::zip_equal(ArrayRef(at).drop_front(first), sums)) {
        results.push_back(finishSum(emitter, context, contraction, loops, sum));
        if (results.back().empty())
          result = failure();
      }
    }
    for (int64_t i = 0; i < atOnce && succeeded(result); ++i)
      storeTogether(emitter, context, contraction, at[size_t(i * together)],
                    ArrayRef(results).slice(size_t(i * together), size_t(together)));
    return Values();
  });
  return result;
}

LogicalResult WgmmaEpilogue::finishChunk(const SumTile &tile) {
  if (together == 1)
    return finishElements(tile);
  const SumTile last{tile.batch, b.add(tile.row, b.integer(warpRows - 1)), b.add(tile.column, b.integer(chunk - 1))};
  LogicalResult neighbours = success(), elements = success();
  auto finish = [&](LogicalResult &result, auto how) {
    return [this, &result, &tile, how] {
      result = (this->*how)(tile);
      return Values();
    };
  };
  b.ifElse(b.both(aligned, isInside(last)), TypeRange(), finish(neighbours, &WgmmaEpilogue::finishNeighbours),
           finish(elements, &WgmmaEpilogue::finishElements));
  return success(succeeded(neighbours) && succeeded(elements));
}

LogicalResult WgmmaEpilogue::finish(const SumTile &tile, ValueRange sums) {
  LogicalResult result = success();
  for (int64_t first = 0; first < int64_t(sums.size()) * 2 && succeeded(result); first += chunk) {
    Value isRow = b.isBelow(tile.row, rowCount); // the warp's first row
    b.ifThen(b.both(isRow, b.isBelow(b.add(tile.column, b.integer(first)), columnCount)), [&] {
      putChunk(sums, first);
      tile::syncWarp(b);
      result = finishChunk({tile.batch, tile.row, b.add(tile.column, b.integer(first))});
      tile::syncWarp(b);
    });
  }
  return result;
}

} // namespace kiln::cuda
