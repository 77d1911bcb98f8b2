// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/attention/MmaProduct.h"

#include "targets/cuda/tile/Shared.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

static constexpr int64_t mmaRows = 16, mmaColumns = 8; // shape of one mma.sync
static constexpr int64_t stepBytes = tile::mmaKBytes;

void AttentionMmaProduct::begin(Value thread) {
  Value ofWarp = b.rem(thread, b.integer(32)), warp = b.div(thread, b.integer(32));
  lane = b.rem(ofWarp, b.integer(4)), quad = b.div(ofWarp, b.integer(4));
  Value rowOfWarp = b.mul(warp, b.integer(shape.rowsOfWarp()));
  firstRow = b.add(rowOfWarp, quad);
  // Matrices 0 and 1 of ldmatrix are lines 0 to 7 and 8 to 15 of the first 16 bytes, 2 and 3 those of the other 16.
  Value matrix = b.div(ofWarp, b.integer(8));
  Value line = b.add(b.mul(b.rem(matrix, b.integer(2)), b.integer(8)), b.rem(ofWarp, b.integer(8)));
  Value channel = b.mul(b.div(matrix, b.integer(2)), b.integer(16 / shape.bytes()));
  auto sourceAt = [&](const LineShape &lines, Value line, Value channel) {
    return Source{lines, b.mul(lines.place(b, line, channel), b.integer(shape.bytes()))};
  };
  queries = sourceAt(shape.queryLines(), b.add(rowOfWarp, line), channel);
  keysIn = sourceAt(shape.keyLines(), line, channel);
  values = shape.isHalf() ? sourceAt(shape.valueLines(), line, channel)
                          : sourceAt(shape.valueLines(), b.mul(lane, b.integer(2)), quad);
}

/// A thread has two of each 16 rows, eight rows apart.
Value AttentionMmaProduct::row(int64_t i) { return b.add(firstRow, b.integer(i * (mmaRows / 2))); }
Value AttentionMmaProduct::key(int64_t j) {
  return b.add(b.mul(lane, b.integer(2)), b.integer(j / 2 * mmaColumns + j % 2));
}

/// Loads the lane's fragment of 16 lines from 16 i on and 32 bytes of channels, four registers. Swizzled lines permute
/// chunks within 128 bytes by an exclusive or, which is the same again sixteen lines further.
Values AttentionMmaProduct::load(const Source &source, Value tile, int64_t i, int64_t step, bool isTransposed) {
  const int64_t inLine = step * stepBytes, ofSwizzle = source.lines.isSwizzled ? inLine % 128 : 0;
  const int64_t ofLines = i * mmaRows * source.lines.pitch * shape.bytes();
  Value moved = source.start;
  if (ofSwizzle)
    moved = b.createOrFold<arith::XOrIOp>(moved, b.integer(ofSwizzle));
  Value from = b.addressOf(b.getI8Type(), tile, moved);
  return tile::loadMatrices(b, tile::advance(b, from, (ofLines + inLine - ofSwizzle) / 4), isTransposed);
}

/// Updates the accumulators of 16 rows from 16 i on and eight columns in `sums`, which has `ofRow` accumulators per
/// row.
void AttentionMmaProduct::multiplyAdd(ArrayRef<Value> x, ArrayRef<Value> y, Values &sums, int64_t ofRow, int64_t i,
                                      int64_t column) {
  Values four;
  auto place = [&](int64_t n) { return (2 * i + n / 2) * ofRow + 2 * column + n % 2; };
  for (int64_t n = 0; n < 4; ++n)
    four.push_back(sums[place(n)]);
  for (auto [n, sum] : llvm::enumerate(tile::multiplyAdd(b, *shape.mma, x, y, four)))
    sums[place(int64_t(n))] = sum;
}

Values AttentionMmaProduct::scores(Value queriesAt, Value keysAt) {
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  Values sums(rows() * keys(), zero);
  for (int64_t step = 0; step < shape.paddedHeadDim() * shape.bytes() / stepBytes; ++step) {
    SmallVector<Values> x;
    for (int64_t i = 0; i < shape.rowsOfWarp() / mmaRows; ++i)
      x.push_back(load(queries, queriesAt, i, step, false));
    for (int64_t j = 0; j < shape.keys / 16; ++j) {
      Values y = load(keysIn, keysAt, j, step, false);
      for (int64_t i = 0; i < int64_t(x.size()); ++i)
        for (int64_t half : {0, 1})
          multiplyAdd(x[i], {y[half], y[half + 2]}, sums, keys(), i, 2 * j + half);
    }
  }
  if (factor != 1) {
    Value by = arith::ConstantOp::create(b, b.getF32FloatAttr(factor));
    for (Value &sum : sums)
      sum = b.createOrFold<arith::MulFOp>(sum, by);
  }
  return sums;
}

/// Returns rows g and g + 8 of the first half of the keys, then of the other half.
Values AttentionMmaProduct::weightsOf(ValueRange weights, int64_t i, int64_t step) {
  const int64_t together = 4 / shape.bytes();
  Values words;
  for (int64_t n = 0; n < 4; ++n) {
    const int64_t first = (2 * i + n % 2) * keys() + (2 * step + n / 2) * together;
    words.push_back(tile::packFactors(b, *shape.mma, weights.slice(first, together)));
  }
  return words;
}

/// Returns two registers for each eight of the 16 channels from 16 c on. ldmatrix does not transpose f32: such values
/// are loaded one by one, for the keys 2 t and 2 t + 1, whose weights the lane has.
Values AttentionMmaProduct::valuesOf(Value valuesAt, int64_t step, int64_t c) {
  if (shape.isHalf())
    return load(values, valuesAt, step, c, /*isTransposed=*/true);
  Value from = b.addressOf(b.getI8Type(), valuesAt, values.start);
  Values words;
  for (int64_t channel : {c * 16, c * 16 + mmaColumns})
    for (int64_t key : {step * 8, step * 8 + 1}) {
      Value value = tile::loadOne(b, tile::advance(b, from, key * values.lines.pitch + channel));
      words.push_back(b.createOrFold<arith::BitcastOp>(b.getI32Type(), value));
    }
  return words;
}

Values AttentionMmaProduct::add(const Values &weights, Value, Value valuesAt, ValueRange outputs) {
  Values sums(outputs);
  for (int64_t step = 0; step < shape.keys * shape.bytes() / stepBytes; ++step) {
    SmallVector<Values> x;
    for (int64_t i = 0; i < shape.rowsOfWarp() / mmaRows; ++i)
      x.push_back(weightsOf(weights, i, step));
    for (int64_t c = 0; c < shape.paddedChannels() / 16; ++c) {
      Values y = valuesOf(valuesAt, step, c);
      for (int64_t i = 0; i < int64_t(x.size()); ++i)
        for (int64_t half : {0, 1})
          multiplyAdd(x[i], {y[2 * half], y[2 * half + 1]}, sums, outputsOfRow(), i, 2 * c + half);
    }
  }
  return sums;
}

/// Stores two neighbouring outputs at a time.
void AttentionMmaProduct::store(ValueRange outputs, Value to) {
  Value start = b.add(b.mul(firstRow, b.integer(shape.outputPitch())), b.mul(lane, b.integer(2)));
  Value place = tile::advance(b, to, start);
  for (int64_t i = 0; i < rows(); ++i)
    for (int64_t c = 0; c < outputsOfRow(); c += 2)
      tile::storeVector(b, Values(outputs.slice(i * outputsOfRow() + c, 2)),
                        tile::advance(b, place, i * (mmaRows / 2) * shape.outputPitch() + c / 2 * mmaColumns));
}

} // namespace kiln::cuda
