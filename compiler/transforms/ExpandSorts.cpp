// SPDX-License-Identifier: Apache-2.0
//
// Sorted positions and sums of rows by index as ops of kernels, for targets whose host code cannot call the run time's
// functions, since the tensors are in another memory:
//
//   argsort     the place of an element is the number of elements before it; the inverse permutation is a sum, too
//   the first few positions: steps, each of which finds the largest element that is left
//   index_add   each row of the table compares all indices with its number
#include "compiler/dialect/gradients/GradientBuilder.h"
#include "compiler/transforms/Passes.h"

#include <limits>

namespace mlir::kiln {

#define GEN_PASS_DEF_EXPANDSORTS
#include "compiler/transforms/Passes.h.inc"

namespace {

/// A constant of this many positions at most is found in steps, if the axis has several times as many.
constexpr int64_t mostSteps = 64;

class Expander {
public:
  explicit Expander(Operation *op) : builder(op), b(builder, op->getLoc()) {}

  Value expand(IndexAddOp sum) {
    const SmallVector<AffineExpr> table = getExtents(rankedType(sum.getX())),
                                  rows = getExtents(rankedType(sum.getRows()));
    const AffineExpr one = b.extent(1);
    Value numbers = b.reshape(b.create<PositionsOp>(sum.getX(), 0), {table[0], one});
    Value isHere = b.create<EqualOp>(numbers, sum.getIndices());
    Value chosen = b.where(b.reshape(isHere, {table[0], rows[0], one}), sum.getRows(), scalar(sum.getRows(), 0));
    return b.add(sum.getX(), b.create<SumOp>(chosen, 1));
  }

  Value expand(ArgsortOp sort) {
    axis = static_cast<int64_t>(sort.getAxis());
    const AffineExpr count = getExtents(rankedType(sort.getResult()))[axis],
                     whole = getExtents(rankedType(sort.getX()))[axis];
    auto some = dyn_cast<AffineConstantExpr>(count), all = dyn_cast<AffineConstantExpr>(whole);
    const bool isPart = count != whole;
    if (isPart && some && sort.getDescending() && some.getValue() <= mostSteps &&
        (!all || all.getValue() >= 4 * some.getValue()))
      return find(sort.getX(), some.getValue());
    Value places = compare(sort.getX(), sort.getDescending());
    return isPart ? b.createAs<SliceOp>(sort.getType(), places, axis, 0, /*at_end=*/false) : places;
  }

private:
  Value scalar(Value like, int64_t value) {
    Type element = rankedType(like).getElementType();
    if (isa<FloatType>(element))
      return b.number(like, static_cast<double>(value));
    return constant(element, IntegerAttr::get(element, value));
  }
  Value constant(Type element, Attribute value) {
    return b.create<ConstantOp>(DenseElementsAttr::get(RankedTensorType::get({}, element), value));
  }
  Value isNot(Value condition) {
    return b.create<LogicalXorOp>(condition, constant(builder.getI1Type(), builder.getBoolAttr(true)));
  }
  Value asInteger(Value condition) {
    return b.createAs<CastOp>(rankedType(condition).clone(builder.getI32Type()), condition);
  }

  /// [n, 1, ...]: the positions of the axis, aligned with it.
  Value positionsOf(Value x) {
    SmallVector<AffineExpr> column(rankedType(x).getRank() - axis, b.extent(1));
    column[0] = getExtents(rankedType(x))[axis];
    return b.reshape(b.create<PositionsOp>(x, axis), column);
  }
  /// Inserts an axis of extent 1.
  Value unsqueeze(Value x, int64_t at) {
    SmallVector<AffineExpr> extents = getExtents(rankedType(x));
    extents.insert(extents.begin() + at, b.extent(1));
    return b.reshape(x, extents);
  }

  /// Whether x comes before y because of its value. NaN is the largest number and equal to itself.
  Value precedes(Value x, Value y, bool isDescending) {
    if (isDescending)
      return precedes(y, x, false);
    if (!isa<FloatType>(rankedType(x).getElementType()))
      return b.create<LessOp>(x, y);
    return b.create<LogicalAndOp>(isNot(b.create<LessEqualOp>(y, x)), b.create<EqualOp>(x, x));
  }

  /// Compares all pairs of elements.
  Value compare(Value x, bool isDescending) {
    Value otherPlace = positionsOf(x), ownPlace = unsqueeze(otherPlace, 1);
    Value own = unsqueeze(x, axis + 1), other = unsqueeze(x, axis);
    Value isBefore = b.where(b.create<LessOp>(otherPlace, ownPlace), isNot(precedes(own, other, isDescending)),
                             precedes(other, own, isDescending));
    Value place = b.create<SumOp>(asInteger(isBefore), axis + 1);
    // The permutation that takes each element to its place is inverted: which element has the place?
    Value hasPlace = b.create<EqualOp>(unsqueeze(place, axis), ownPlace);
    return b.create<SumOp>(b.where(hasPlace, otherPlace, b.integer(0)), axis + 1);
  }

  /// Finds the first of the largest elements again and again. Those that were taken become the lowest number; if no
  /// larger one is left, the first that was not taken is next.
  Value find(Value x, int64_t count) {
    Type element = rankedType(x).getElementType();
    Value lowest = isa<FloatType>(element) ? b.number(x, -std::numeric_limits<double>::infinity())
                                           : scalar(x, -(int64_t(1) << (element.getIntOrFloatBitWidth() - 1)));
    Value places = positionsOf(x), isTaken, left = x;
    SmallVector<Value> found;
    auto largest = [&](Value of) { return b.keepAxis(b.create<ArgmaxOp>(of, axis), x, axis); };
    for (int64_t step = 0; step < count; ++step) {
      Value next = largest(left);
      if (isTaken)
        next = largest(b.where(isTaken, b.integer(-1), asInteger(b.create<EqualOp>(places, next))));
      Value isFound = b.create<EqualOp>(places, next);
      isTaken = isTaken ? b.create<LogicalOrOp>(isTaken, isFound) : isFound;
      left = b.where(isFound, lowest, left);
      found.push_back(next);
    }
    return found.size() == 1 ? found.front() : b.create<ConcatOp>(found, axis);
  }

  OpBuilder builder;
  GradientBuilder b;
  int64_t axis = 0;
};

struct ExpandSorts : impl::ExpandSortsBase<ExpandSorts> {
  void runOnOperation() override {
    SmallVector<Operation *> found;
    getOperation().walk([&](Operation *op) {
      if (isa<ArgsortOp, IndexAddOp>(op))
        found.push_back(op);
    });
    for (Operation *op : found) {
      Expander expander(op);
      auto sort = dyn_cast<ArgsortOp>(op);
      op->getResult(0).replaceAllUsesWith(sort ? expander.expand(sort) : expander.expand(cast<IndexAddOp>(op)));
      op->erase();
    }
  }
};

} // namespace
} // namespace mlir::kiln
