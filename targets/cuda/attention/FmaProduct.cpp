// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/attention/FmaProduct.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "targets/cuda/tile/Shared.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

static constexpr int64_t across = 8, down = 4; // arrangement of a warp's lanes
static constexpr int64_t bodySteps = 8;        // K indices, or keys, in the body of an innermost loop

/// A warp has neighbouring rows, a thread each fourth of them.
void AttentionFmaProduct::begin(Value thread) {
  Value ofWarp = b.rem(thread, b.integer(32)), warp = b.div(thread, b.integer(32));
  lane = b.rem(ofWarp, b.integer(across));
  firstRow = b.add(b.mul(warp, b.integer(down * shape.rowsOfThread)), b.div(ofWarp, b.integer(across)));
}

Value AttentionFmaProduct::row(int64_t i) { return b.add(firstRow, b.integer(i * down)); }
Value AttentionFmaProduct::key(int64_t j) { return b.add(lane, b.integer(j * across)); }

Value AttentionFmaProduct::start(Value address, Value line, int64_t pitch) {
  return tile::advance(b, address, b.mul(line, b.integer(pitch)));
}

/// Accumulates along K: for each four K indices the rows are loaded first, then one key after the other.
Values AttentionFmaProduct::scores(Value queries, Value keysAt) {
  const int64_t pitch = shape.queryLines().pitch, keyPitch = shape.keyLines().pitch;
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  Value fromQueries = start(queries, firstRow, pitch), fromKeys = start(keysAt, lane, keyPitch);
  return b.loop(b.integer(shape.paddedHeadDim() / bodySteps), Values(rows() * keys(), zero),
                [&](Value body, ValueRange last) {
                  Values sums(last);
                  Value moved = b.mul(body, b.integer(bodySteps));
                  Value q = tile::advance(b, fromQueries, moved), k = tile::advance(b, fromKeys, moved);
                  for (int64_t step = 0; step < bodySteps; step += 4) {
                    SmallVector<Values> ofRows;
                    for (int64_t i = 0; i < rows(); ++i)
                      ofRows.push_back(tile::loadFour(b, tile::advance(b, q, i * down * pitch + step)));
                    for (int64_t j = 0; j < keys(); ++j) {
                      Values ofKey = tile::loadFour(b, tile::advance(b, k, j * across * keyPitch + step));
                      for (int64_t d = 0; d < 4; ++d)
                        for (int64_t i = 0; i < rows(); ++i) {
                          Value &sum = sums[i * keys() + j];
                          sum = math::FmaOp::create(b, ofRows[i][d], ofKey[d], sum);
                        }
                    }
                  }
                  return sums;
                });
}

/// Only threads of one warp share attention weights.
Values AttentionFmaProduct::add(const Values &weights, Value room, Value values, ValueRange outputs) {
  const int64_t pitch = shape.weightLines().pitch, valuePitch = shape.valueLines().pitch, channels = outputsOfRow();
  Value rowsAt = start(room, firstRow, pitch), to = tile::advance(b, rowsAt, lane);
  for (int64_t i = 0; i < rows(); ++i)
    for (int64_t j = 0; j < keys(); ++j)
      tile::storeOne(b, weights[i * keys() + j], tile::advance(b, to, i * down * pitch + j * across));
  tile::syncWarp(b);
  Value valuesAt = tile::advance(b, values, b.mul(lane, b.integer(4)));
  return b.loop(b.integer(shape.keys / bodySteps), outputs, [&](Value body, ValueRange last) {
    Values sums(last);
    Value first = b.mul(body, b.integer(bodySteps));
    Value w = tile::advance(b, rowsAt, first), v = tile::advance(b, valuesAt, b.mul(first, b.integer(valuePitch)));
    for (int64_t step = 0; step < bodySteps; step += 4) {
      SmallVector<Values> ofRows;
      for (int64_t i = 0; i < rows(); ++i)
        ofRows.push_back(tile::loadFour(b, tile::advance(b, w, i * down * pitch + step)));
      for (int64_t k = 0; k < 4; ++k)
        for (int64_t c = 0; c < channels; c += 4) {
          Values ofKey = tile::loadFour(b, tile::advance(b, v, (step + k) * valuePitch + c * across));
          for (int64_t i = 0; i < rows(); ++i)
            for (int64_t channel = 0; channel < 4; ++channel) {
              Value &sum = sums[i * channels + c + channel];
              sum = math::FmaOp::create(b, ofRows[i][k], ofKey[channel], sum);
            }
        }
    }
    return sums;
  });
}

void AttentionFmaProduct::store(ValueRange outputs, Value to) {
  const int64_t pitch = shape.outputPitch(), channels = outputsOfRow();
  Value place = tile::advance(b, start(to, firstRow, pitch), b.mul(lane, b.integer(4)));
  for (int64_t i = 0; i < rows(); ++i)
    for (int64_t c = 0; c < channels; c += 4) {
      Values four(outputs.slice(i * channels + c, 4));
      tile::storeFour(b, four, tile::advance(b, place, i * down * pitch + c * across));
    }
}

} // namespace kiln::cuda
