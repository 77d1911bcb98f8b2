// SPDX-License-Identifier: Apache-2.0
//
// kiln.dropout: Philox4x32-10 (Salmon et al. 2011, section 3.3) in i32 operations, which every target supports with
// equal results.
#include "compiler/dialect/lowering/KernelBuilder.h"
#include "compiler/dialect/lowering/RowCollapser.h"

namespace mlir::kiln {

namespace {

class Philox {
public:
  explicit Philox(ElementBuilder &b) : b(b) {}

  /// Returns word 0 for a counter and the key (seed, 0).
  Value word(std::array<Value, 4> counter, Value seed) {
    uint32_t ofSeed = 0, other = 0;
    for (int round = 0; round < 10; ++round, ofSeed += 0x9E3779B9, other += 0xBB67AE85) {
      const auto [high0, low0] = multiply(counter[0], 0xD2511F53);
      const auto [high1, low1] = multiply(counter[2], 0xCD9E8D57);
      counter = {exclusive(exclusive(high1, counter[1]), add(seed, integer(ofSeed))), low1,
                 exclusive(exclusive(high0, counter[3]), integer(other)), low0};
    }
    return counter[0];
  }
  Value integer(uint32_t bits) { return b.kernel.createConstant(b.getI32IntegerAttr(static_cast<int32_t>(bits))); }
  Value shiftRight(Value x, uint32_t bits) { return arith::ShRUIOp::create(b, x, integer(bits)); }

private:
  Value add(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value multiply(Value x, Value y) { return arith::MulIOp::create(b, x, y); }
  Value exclusive(Value x, Value y) { return arith::XOrIOp::create(b, x, y); }
  Value lower(Value x) { return arith::AndIOp::create(b, x, integer(0xFFFF)); }

  /// Returns the upper and the lower half of an unsigned product, from products of 16-bit halves.
  std::pair<Value, Value> multiply(Value x, uint32_t factor) {
    Value low = lower(x), high = shiftRight(x, 16), f0 = integer(factor & 0xFFFF), f1 = integer(factor >> 16);
    Value middle = add(multiply(high, f0), shiftRight(multiply(low, f0), 16));
    Value carried = add(multiply(low, f1), lower(middle));
    return {add(multiply(high, f1), add(shiftRight(middle, 16), shiftRight(carried, 16))),
            multiply(x, integer(factor))};
  }

  ElementBuilder &b;
};

/// Returns the linear index of an element, in row-major order.
Value numberOf(ElementBuilder &b, ArrayRef<Coordinate> at, RankedTensorType type) {
  Value number = b.kernel.createConstant(b.getIndexAttr(0));
  for (auto [coordinate, extent] : llvm::zip_equal(at, getExtents(type))) {
    number = arith::MulIOp::create(b, number, b.kernel.createExtent(extent));
    number = arith::AddIOp::create(b, number, b.toIndex(coordinate));
  }
  return arith::IndexCastOp::create(b, b.getI32Type(), number);
}

} // namespace

Value DropoutOp::evaluateElement(ElementBuilder &b, ArrayRef<Coordinate> at) {
  const double probability = getProbability().convertToDouble();
  Philox philox(b);
  Value stream = philox.integer(static_cast<uint32_t>(getStream()));
  Value iteration = getIteration() ? b.read(getIteration(), {}) : philox.integer(0);
  Value word =
      philox.word({numberOf(b, at, getType()), stream, iteration, b.read(getStep(), {})}, b.read(getSeed(), {}));
  Value limit = philox.integer(static_cast<uint32_t>(std::lround(probability * 0x1p24)));
  Value isDropped = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, philox.shiftRight(word, 8), limit);
  Value x = b.read(getX(), at);
  Value larger = arith::MulFOp::create(b, x, b.constant(x.getType(), 1 / (1 - probability)));
  return arith::SelectOp::create(b, isDropped, b.constant(x.getType(), 0), larger);
}

bool DropoutOp::collapseRows(RowCollapser &rows) {
  return llvm::all_of(getOperands().drop_front(), [&](Value number) { return rows.markWhole(number); }) &&
         rows.markFull(getX());
}
SmallVector<IndexOperand> DropoutOp::getIndexOperands() { return {}; }

} // namespace mlir::kiln
