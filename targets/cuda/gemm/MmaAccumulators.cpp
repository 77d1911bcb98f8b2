// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/gemm/MmaAccumulators.h"

#include "targets/cuda/gemm/FmaAccumulators.h"
#include "targets/cuda/tile/Shared.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

static constexpr int64_t rowsAtOnce = 16;

MmaProduct::MmaProduct(tile::Builder &b, const TileShape &shape, const InputTile &inputA, const InputTile &inputB)
    : b(b), shape(shape), sideA{inputA, {}, {}}, sideB{inputB, {}, {}} {}

/// Matrices 0 and 1 of ldmatrix are rows 0 to 7 and 8 to 15 of the first 16 bytes of K, 2 and 3 those of the other 16.
/// Without ldmatrix, lane 4 g + t reads row g and K index t.
void MmaProduct::place(Side &side, Value first) {
  side.first = first;
  Value ofEight = b.rem(lane, b.integer(8)), matrix = b.div(lane, b.integer(8));
  Value half = b.rem(matrix, b.integer(2)), chunk = b.div(matrix, b.integer(2));
  Value line, inLine;
  if (!side.tile.isSwizzled()) {
    line = b.rem(lane, b.integer(4)), inLine = b.add(first, b.div(lane, b.integer(4)));
  } else if (side.tile.isKMajor()) {
    line = b.add(first, b.add(b.mul(half, b.integer(8)), ofEight));
    inLine = b.mul(chunk, b.integer(16 / side.tile.bytes()));
  } else {
    line = b.add(b.mul(chunk, b.integer(8)), ofEight), inLine = b.add(first, b.mul(half, b.integer(8)));
  }
  side.start = b.mul(side.tile.place(line, inLine), b.integer(side.tile.bytes()));
}

void MmaProduct::begin(Value thread) {
  lane = b.rem(thread, b.integer(32));
  Value warp = b.div(thread, b.integer(32)), across = b.integer(shape.bn / shape.tn);
  place(sideA, b.mul(b.div(warp, across), b.integer(shape.tm)));
  place(sideB, b.mul(b.rem(warp, across), b.integer(shape.tn)));
}

Values MmaProduct::zeros() {
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  return Values(shape.tm * shape.tn / 32, zero);
}

/// Returns the byte offset in a stage of the lane's elements, for rows from 16 i on and a step of K. Chunks are
/// permuted within a line by an exclusive or, which is applied here as well, and which is the same again sixteen lines
/// further.
Value MmaProduct::bytesTo(const Side &side, int64_t i, int64_t step) {
  const int64_t lines = side.tile.pitch() * side.tile.bytes() * rowsAtOnce;
  if (side.tile.isKMajor())
    return b.add(b.createOrFold<arith::XOrIOp>(side.start, b.integer(step * tile::mmaKBytes)), b.integer(i * lines));
  return b.add(b.createOrFold<arith::XOrIOp>(side.start, b.integer(i * rowsAtOnce * side.tile.bytes())),
               b.integer(step * lines));
}

/// Loads the lane's fragment of 16 rows and 32 bytes of K, four registers.
Values MmaProduct::load(const Side &side, Value stage, int64_t i, int64_t step) {
  Values words;
  if (side.tile.isSwizzled()) {
    Value from = b.addressOf(b.getI8Type(), stage, bytesTo(side, i, step));
    words = tile::loadMatrices(b, from, !side.tile.isKMajor());
    if (shape.mma != tile::MmaType::TF32)
      return words;
    for (Value &word : words)
      word = b.createOrFold<arith::BitcastOp>(b.getF32Type(), word);
  } else {
    Value from = b.addressOf(b.getI8Type(), stage, side.start);
    for (int64_t ofWord : {0, 1, 2, 3})
      words.push_back(tile::loadOne(
          b,
          tile::advance(b, from, (step * 8 + ofWord / 2 * 4) * side.tile.pitch() + i * rowsAtOnce + ofWord % 2 * 8)));
  }
  for (Value &word : words)
    word = tile::roundToTf32(b, word);
  return words;
}

Values MmaProduct::add(Value stageA, Value stageB, ValueRange sums) {
  Values next(sums);
  const int64_t steps = shape.bk * tile::bytesOf(*shape.mma) / tile::mmaKBytes, columns = shape.tn / 8;
  for (int64_t step = 0; step < steps; ++step) {
    SmallVector<Values> x;
    for (int64_t i = 0; i < shape.tm / rowsAtOnce; ++i)
      x.push_back(load(sideA, stageA, i, step));
    for (int64_t j = 0; j < shape.tn / rowsAtOnce; ++j) {
      Values y = load(sideB, stageB, j, step);
      for (int64_t i = 0; i < shape.tm / rowsAtOnce; ++i)
        for (int64_t half : {0, 1}) {
          auto four = MutableArrayRef(next).slice((i * columns + 2 * j + half) * 4, 4);
          llvm::copy(tile::multiplyAdd(b, *shape.mma, x[i], {y[half], y[half + 2]}, Values(four)), four.begin());
        }
    }
  }
  return next;
}

/// Stores two neighbouring elements at a time.
void MmaProduct::store(const Values &sums, Value to) {
  const int64_t pitch = sumPitch(shape), columns = shape.tn / 8;
  Value row = b.add(sideA.first, b.div(lane, b.integer(4)));
  Value column = b.add(sideB.first, b.mul(b.rem(lane, b.integer(4)), b.integer(2)));
  Value start = tile::advance(b, to, b.add(b.mul(row, b.integer(pitch)), column));
  for (int64_t i = 0; i < shape.tm / rowsAtOnce; ++i)
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t half : {0, 1})
        tile::storeVector(b, ArrayRef(sums).slice((i * columns + j) * 4 + half * 2, 2),
                          tile::advance(b, start, (i * rowsAtOnce + half * 8) * pitch + j * 8));
}

std::unique_ptr<Product> createProduct(tile::Builder &b, const TileShape &shape, const InputTile &inputA,
                                       const InputTile &inputB) {
  if (shape.mma)
    return std::make_unique<MmaProduct>(b, shape, inputA, inputB);
  return std::make_unique<TileProduct>(b, shape, inputA, inputB);
}

} // namespace kiln::cuda
