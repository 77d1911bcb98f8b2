// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/attention/Product.h"

#include "targets/cuda/attention/FmaProduct.h"
#include "targets/cuda/attention/MmaProduct.h"

namespace kiln::cuda {

using namespace mlir;

Value AttentionProduct::isFirstOfRow() { return b.compare(arith::CmpIPredicate::eq, lane, b.integer(0)); }

Value AttentionProduct::reduceRow(Value value, function_ref<Value(Value, Value)> combine) {
  for (auto bits = int32_t(shape.threadsOfRow()) / 2; bits > 0; bits /= 2)
    value = combine(value, b.shuffleXor(value, bits));
  return value;
}

std::unique_ptr<AttentionProduct> createAttentionProduct(tile::Builder &b, const Attention &attention,
                                                         const AttentionShape &shape) {
  if (shape.mma)
    return std::make_unique<AttentionMmaProduct>(b, shape, attention.mma->factor);
  return std::make_unique<AttentionFmaProduct>(b, shape);
}

} // namespace kiln::cuda
