// SPDX-License-Identifier: Apache-2.0
//
// Elements of data movement ops: reads at another position, or from one of several tensors.
#include "compiler/dialect/lowering/KernelBuilder.h"
#include "compiler/dialect/lowering/RowCollapser.h"

namespace mlir::kiln {

/// Linearises the coordinates [begin, end) of the result; their inner extents are static.
static AffineExpr linearize(ElementBuilder &b, ArrayRef<Coordinate> at, ArrayRef<AffineExpr> extents) {
  AffineExpr sum = b.getAffineConstantExpr(0);
  for (auto [coordinate, extent] : llvm::zip_equal(at, extents))
    sum = sum * extent + coordinate.expr;
  return sum;
}

static bool isOne(AffineExpr extent) {
  auto constant = dyn_cast<AffineConstantExpr>(extent);
  return constant && constant.getValue() == 1;
}

/// Splits the axes into groups with equal products, most of them a single axis on both sides. A group is linear in its
/// inner extents. Axes of extent 1 belong to no group: their coordinate is 0.
Value ReshapeOp::evaluateElement(ElementBuilder &b, ArrayRef<Coordinate> resultAt) {
  const SmallVector<AffineExpr> source = getExtents(cast<RankedTensorType>(getX().getType()));
  SmallVector<AffineExpr> from, to;
  llvm::copy_if(source, std::back_inserter(from), [](AffineExpr extent) { return !isOne(extent); });
  Coordinates at;
  for (auto [coordinate, extent] : llvm::zip_equal(resultAt, getExtents(cast<RankedTensorType>(getType()))))
    if (!isOne(extent)) {
      at.push_back(coordinate);
      to.push_back(extent);
    }
  MLIRContext *context = getContext();
  Coordinates result;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    size_t i0 = i, j0 = j;
    AffineExpr lhs = b.getAffineConstantExpr(1), rhs = lhs;
    do {
      auto a = dyn_cast<AffineConstantExpr>(lhs), c = dyn_cast<AffineConstantExpr>(rhs);
      bool takeFrom = j == to.size() || (i < from.size() && (lhs == rhs || !c || (a && a.getValue() < c.getValue())));
      if (takeFrom)
        lhs = getProduct({lhs, from[i++]}, context);
      else
        rhs = getProduct({rhs, to[j++]}, context);
    } while (lhs != rhs && (i < from.size() || j < to.size()));
    if (i - i0 == 1 && j - j0 == 1) {
      result.push_back(at[j0]);
      continue;
    }
    AffineExpr linear = linearize(b, ArrayRef(at).slice(j0, j - j0), ArrayRef(to).slice(j0, j - j0));
    Coordinates run;
    for (size_t k = i; k-- > i0;) {
      run.push_back(b.simplify(k == i0 ? linear : linear % from[k]));
      linear = k == i0 ? linear : linear.floorDiv(from[k]);
    }
    result.append(run.rbegin(), run.rend());
  }
  for (auto [i, extent] : llvm::enumerate(source))
    if (isOne(extent))
      result.insert(result.begin() + i, b.getAffineConstantExpr(0));
  return b.read(getX(), result);
}

bool ReshapeOp::collapseRows(RowCollapser &) { return false; }

/// Reads every tensor at a clamped position and selects.
Value ConcatOp::evaluateElement(ElementBuilder &b, ArrayRef<Coordinate> at) {
  int64_t axis = getAxis();
  Value position = b.toIndex(at[axis]), result;
  Value zero = b.kernel.createConstant(b.getIndexAttr(0)), one = b.kernel.createConstant(b.getIndexAttr(1));
  AffineExpr end = b.getAffineConstantExpr(0);
  for (Value input : getInputs()) {
    AffineExpr extent = getExtents(cast<RankedTensorType>(input.getType()))[axis];
    Value start = b.kernel.createExtent(end), size = b.kernel.createExtent(extent);
    Value offset = arith::SubIOp::create(b, position, start);
    Value last = arith::SubIOp::create(b, size, one);
    Coordinates inside(at);
    inside[axis] = Value(arith::MaxSIOp::create(b, Value(arith::MinSIOp::create(b, offset, last)), zero));
    Value element = b.read(input, inside);
    if (result) {
      Value isBefore = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, position, start);
      result = arith::SelectOp::create(b, isBefore, result, element);
    } else {
      result = element;
    }
    end = canonicalExtent(end + extent);
  }
  return result;
}

bool ConcatOp::collapseRows(RowCollapser &rows) {
  return int64_t(getAxis()) >= rows.axes &&
         llvm::all_of(getInputs(), [&](Value input) { return rows.markFull(input); });
}

SmallVector<int64_t> ConcatOp::getResizedAxes() { return {int64_t(getAxis())}; }

/// Maps the coordinate of the result to that of the operand, of which the result is the end.
static Coordinate shiftToEnd(ElementBuilder &b, SliceOp op, const Coordinate &coordinate) {
  auto extentOf = [&](Value value) { return getExtents(cast<RankedTensorType>(value.getType()))[op.getAxis()]; };
  AffineExpr skipped = canonicalExtent(extentOf(op.getX()) - extentOf(op.getResult()));
  if (auto constant = dyn_cast<AffineConstantExpr>(skipped))
    return b.shift(coordinate, constant.getValue());
  return Value(arith::AddIOp::create(b, b.toIndex(coordinate), b.kernel.createExtent(skipped)));
}

Value SliceOp::evaluateElement(ElementBuilder &b, ArrayRef<Coordinate> at) {
  Coordinates source(at);
  Coordinate &moved = source[getAxis()];
  moved = getAtEnd() ? shiftToEnd(b, *this, moved) : b.shift(moved, getStart());
  return b.read(getX(), source);
}

bool SliceOp::collapseRows(RowCollapser &rows) { return int64_t(getAxis()) >= rows.axes && rows.markFull(getX()); }

SmallVector<int64_t> SliceOp::getResizedAxes() { return {int64_t(getAxis())}; }

Value TransposeOp::evaluateElement(ElementBuilder &b, ArrayRef<Coordinate> at) {
  Coordinates source(at);
  for (auto [i, axis] : llvm::enumerate(getPermutation()))
    source[axis] = at[i];
  return b.read(getX(), source);
}

bool TransposeOp::collapseRows(RowCollapser &rows) {
  return llvm::equal(getPermutation().take_front(rows.axes), llvm::seq<int64_t>(rows.axes)) && rows.markFull(getX());
}

} // namespace mlir::kiln
