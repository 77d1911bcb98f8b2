// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/ptx/Combiner.h"

#include "compiler/dialect/KilnDialect.h"
#include "compiler/kernel/RowReduction.h"
#include "mlir/IR/Matchers.h"
#include "targets/cuda/ptx/ScalarOps.h"

namespace kiln::cuda {

using namespace mlir;
using arith::CmpIPredicate;
using tile::Values;

/// Whether applying it to the same number again changes nothing.
static bool isIdempotent(Operation *op) {
  return isa<arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp, arith::MaxSIOp, arith::MinSIOp,
             arith::AndIOp, arith::OrIOp>(op);
}

static bool isSum(Operation *op) { return isa<arith::AddFOp, arith::AddIOp, arith::XOrIOp>(op); }

static bool isKnown(Operation *op) {
  return !op->hasAttr(mlir::kiln::strictAttrName) &&
         (isIdempotent(op) || isSum(op) || isa<arith::MulFOp, arith::MulIOp>(op));
}

/// Returns the op that computes the accumulator's next value from the last one and an element, if the last one has no
/// other use.
static Operation *stepOf(Value next, BlockArgument sum) {
  Operation *op = accumulatingOp(next, sum);
  return op && op->getBlock() == sum.getOwner() && isKnown(op) && next.hasOneUse() ? op : nullptr;
}

static bool isComparison(Value value, CmpIPredicate predicate, Value x, Value y) {
  auto op = value.getDefiningOp<arith::CmpIOp>();
  return op && value.hasOneUse() && op.getPredicate() == predicate && op.getLhs() == x && op.getRhs() == y;
}

static bool hasUses(Value value, unsigned uses) { return value.hasNUses(uses); }

/// value, place = isBetter ? (x, i) : (value, place), isBetter = x > value || (x == value && i < place)
static bool isFirstMaximum(ValueRange next, BlockArgument value, BlockArgument place) {
  auto newValue = next[0].getDefiningOp<arith::SelectOp>(), newPlace = next[1].getDefiningOp<arith::SelectOp>();
  if (!newValue || !newPlace || newValue.getCondition() != newPlace.getCondition() ||
      newValue.getFalseValue() != value || newPlace.getFalseValue() != place)
    return false;
  Value x = newValue.getTrueValue(), i = newPlace.getTrueValue();
  auto either = newValue.getCondition().getDefiningOp<arith::OrIOp>();
  auto both = either ? either.getRhs().getDefiningOp<arith::AndIOp>() : arith::AndIOp();
  // There is no other use, so neither x nor i can depend on the last value.
  return both && hasUses(value, 3) && hasUses(place, 2) && hasUses(either, 2) && both->hasOneUse() &&
         newValue->hasOneUse() && newPlace->hasOneUse() &&
         isComparison(either.getLhs(), CmpIPredicate::sgt, x, value) &&
         isComparison(both.getLhs(), CmpIPredicate::eq, x, value) &&
         isComparison(both.getRhs(), CmpIPredicate::slt, i, place);
}

std::optional<Combiner> Combiner::of(linalg::GenericOp op) {
  Combiner result;
  ArrayRef<BlockArgument> sums = op.getRegionOutputArgs();
  ValueRange next = op.getBlock()->getTerminator()->getOperands();
  for (BlockArgument sum : sums)
    if (!sum.getType().isF32() && !sum.getType().isInteger(32))
      return std::nullopt;
  if (sums.size() == 2 && isFirstMaximum(next, sums[0], sums[1]))
    return result;
  for (auto [value, sum] : llvm::zip_equal(next, sums)) {
    result.ops.push_back(stepOf(value, sum));
    if (!result.ops.back())
      return std::nullopt;
  }
  return result;
}

Values Combiner::neutral(tile::Builder &b, ValueRange initial) const {
  Values result(initial);
  for (auto [number, op] : llvm::enumerate(ops)) {
    if (isIdempotent(op))
      continue;
    Type type = result[number].getType();
    if (type.isF32()) // -0 for a sum, since it leaves even -0 unchanged
      result[number] = arith::ConstantOp::create(b, b.getF32FloatAttr(isSum(op) ? -0.0F : 1.0F));
    else
      result[number] = b.integer(type, isSum(op) ? 0 : 1);
  }
  return result;
}

Values Combiner::combine(tile::Builder &b, ValueRange x, ValueRange y) const {
  Values result;
  for (auto [number, op] : llvm::enumerate(ops))
    result.push_back(translateScalarOp(b, op, {x[number], y[number]}));
  if (!ops.empty())
    return result;
  Value isEarlier = b.createOrFold<arith::AndIOp>(b.compare(CmpIPredicate::eq, x[0], y[0]),
                                                  b.compare(CmpIPredicate::slt, x[1], y[1]));
  Value isBetter = b.createOrFold<arith::OrIOp>(b.compare(CmpIPredicate::sgt, x[0], y[0]), isEarlier);
  for (unsigned i = 0; i < 2; ++i)
    result.push_back(b.createOrFold<arith::SelectOp>(isBetter, x[i], y[i]));
  return result;
}

} // namespace kiln::cuda
