// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/gemm/FmaAccumulators.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "targets/cuda/tile/Shared.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

/// K indices in the body of the innermost loop: enough to load the next four while four are accumulated, and few
/// enough for a code size of some hundred lines.
static constexpr int64_t bodySteps = 8;

TileProduct::TileProduct(tile::Builder &b, const TileShape &shape, const InputTile &inputA, const InputTile &inputB)
    : b(b), shape(shape) {
  const int64_t across = std::min<int64_t>(8, shape.bn / shape.tn);
  sideA = {inputA.isKMajor(), inputA.pitch(), 32 / across, shape.tm, {}};
  sideB = {inputB.isKMajor(), inputB.pitch(), across, shape.tn, {}};
}

/// Returns the i-th row of a thread, relative to its first one: neighbouring lanes have neighbouring rows, or groups
/// of four neighbouring rows where those are loaded at once.
int64_t TileProduct::Side::rowOf(int64_t i) const { return isKMajor ? i * lanes : i / 4 * 4 * lanes + i % 4; }

void TileProduct::begin(Value thread) {
  Value lane = b.rem(thread, b.integer(32)), warp = b.div(thread, b.integer(32));
  const int64_t across = shape.bn / (sideB.lanes * sideB.count);
  auto place = [&](Side &side, Value lane, Value warp) {
    Value ofLane = side.isKMajor ? lane : b.mul(lane, b.integer(4));
    side.first = b.add(b.mul(warp, b.integer(side.lanes * side.count)), ofLane);
  };
  place(sideA, b.div(lane, b.integer(sideB.lanes)), b.div(warp, b.integer(across)));
  place(sideB, b.rem(lane, b.integer(sideB.lanes)), b.rem(warp, b.integer(across)));
}

Values TileProduct::zeros() {
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  return Values(shape.tm * shape.tn, zero);
}

Value TileProduct::start(const Side &side, Value stage) {
  return tile::advance(b, stage, side.isKMajor ? b.mul(side.first, b.integer(side.pitch)) : side.first);
}

/// Loads four rows from `i` on, or one row if K is contiguous in memory, for four K indices.
void TileProduct::load(const Side &side, Value from, int64_t step, int64_t i, Fragment &fragment) {
  fragment.resize(side.count * 4);
  if (side.isKMajor) {
    Value place = tile::advance(b, from, side.rowOf(i) * side.pitch + step);
    llvm::copy(tile::loadFour(b, place), fragment.begin() + i * 4);
    return;
  }
  for (int64_t k = 0; k < 4; ++k) {
    Value place = tile::advance(b, from, (step + k) * side.pitch + side.rowOf(i));
    for (auto [row, value] : llvm::enumerate(tile::loadFour(b, place)))
      fragment[(i + row) * 4 + k] = value;
  }
}

Values TileProduct::add(Value stageA, Value stageB, ValueRange sums) {
  Value fromA = start(sideA, stageA), fromB = start(sideB, stageB);
  auto moved = [&](const Side &side, Value from, Value body) {
    return tile::advance(b, from, b.mul(body, b.integer(side.isKMajor ? bodySteps : bodySteps * side.pitch)));
  };
  return b.loop(b.integer(shape.bk / bodySteps), sums, [&](Value body, ValueRange values) {
    Values next(values);
    Value bodyA = moved(sideA, fromA, body), bodyB = moved(sideB, fromB, body);
    for (int64_t step = 0; step < bodySteps; step += 4) {
      Fragment a, c;
      for (int64_t i = 0; i < shape.tm; i += sideA.atOnce())
        load(sideA, bodyA, step, i, a);
      for (int64_t j = 0; j < shape.tn; j += sideB.atOnce()) {
        load(sideB, bodyB, step, j, c);
        for (int64_t k = 0; k < 4; ++k)
          for (int64_t column = j; column < j + sideB.atOnce(); ++column)
            for (int64_t i = 0; i < shape.tm; ++i) {
              Value &sum = next[i * shape.tn + column];
              sum = math::FmaOp::create(b, a[i * 4 + k], c[column * 4 + k], sum);
            }
      }
    }
    return next;
  });
}

void TileProduct::store(const Values &sums, Value to) {
  const int64_t pitch = sumPitch(shape);
  Value start = tile::advance(b, to, b.add(b.mul(sideA.first, b.integer(pitch)), sideB.first));
  for (int64_t i = 0; i < shape.tm; ++i)
    for (int64_t j = 0; j < shape.tn; j += sideB.isKMajor ? 1 : 4) {
      Value place = tile::advance(b, start, sideA.rowOf(i) * pitch + sideB.rowOf(j));
      ArrayRef<Value> of = ArrayRef(sums).drop_front(i * shape.tn + j);
      if (sideB.isKMajor)
        tile::storeOne(b, of.front(), place);
      else
        tile::storeFour(b, of.take_front(4), place);
    }
}

} // namespace kiln::cuda
