// SPDX-License-Identifier: Apache-2.0
//
// Ops along one axis. Each stores its reductions; the elements of norms and softmaxes are then pointwise in these.
//   layer_norm:  mean, corrected mean, then 1 / sqrt(variance + epsilon)
//   rms_norm:    1 / sqrt(mean of squares + epsilon)
//   softmax:     e^(x - max), then 1 / sum                   log_softmax: max, log(sum of e^(x - max))
//   cumsum:      for each element the sum over the whole axis, with all later elements replaced by 0
#include "compiler/dialect/lowering/KernelBuilder.h"
#include "compiler/dialect/lowering/RowCollapser.h"

namespace mlir::kiln {

namespace {

/// Reductions of one operand along one axis, in the op's accumulator type.
class AxisReducer {
public:
  AxisReducer(KernelBuilder &kernel, KernelOpInterface op, Value x, unsigned axis)
      : kernel(kernel), x(x), axis(axis), type(cast<RankedTensorType>(x.getType())), extents(getExtents(type)),
        accumulator(op.getAccumulatorType()) {
    kernel.prepareRepeatedReads(x);
    kept = extents;
    kept.erase(kept.begin() + axis);
  }

  bool isOfFloats() const { return isa<FloatType>(accumulator); }

  /// Reads the operand's element in the accumulator type.
  Value read(ElementBuilder &b) const { return b.convert(b.read(x, b.loops()), accumulator); }

  /// Returns the coordinates of the result's row for the loops of a reduction.
  Coordinates row(ElementBuilder &b) const {
    Coordinates result = b.loops();
    result.erase(result.begin() + axis);
    return result;
  }

  /// Reads the first element of a row.
  Value readFirst(ElementBuilder &b, Coordinates row) const {
    row.insert(row.begin() + axis, getAffineConstantExpr(0, kernel.getContext()));
    return b.convert(b.read(x, row), accumulator);
  }

  /// Returns the sum of `term` over the axis.
  Value sum(function_ref<Value(ElementBuilder &, Value)> term) const {
    auto zero = cast<TypedAttr>(Builder(kernel.getContext()).getZeroAttr(accumulator));
    return kernel.createReduction(extents, axis, zero, [&](ElementBuilder &b, ValueRange sum) {
      Value value = term(b, read(b));
      return SmallVector<Value>{isOfFloats() ? Value(arith::AddFOp::create(b, sum[0], value))
                                             : Value(arith::AddIOp::create(b, sum[0], value))};
    })[0];
  }

  /// Returns the maximum of a softmax's row. It need not propagate NaN: the exponentials do.
  Value shift() const {
    auto type = cast<FloatType>(accumulator);
    auto lowest = FloatAttr::get(type, APFloat::getInf(type.getFloatSemantics(), true));
    return kernel.createReduction(extents, axis, cast<TypedAttr>(lowest), [&](ElementBuilder &b, ValueRange max) {
      return SmallVector<Value>{arith::MaximumFOp::create(b, max[0], read(b))};
    })[0];
  }

  /// Returns the key by which elements are compared.
  Value order(ElementBuilder &b) const {
    Value value = read(b);
    return isOfFloats() ? b.toOrder(value) : value;
  }
  TypedAttr first() const {
    unsigned width = accumulator.getIntOrFloatBitWidth();
    return IntegerAttr::get(IntegerType::get(kernel.getContext(), width), APInt::getSignedMinValue(width));
  }

  Value max() const {
    Value last = kernel.createReduction(extents, axis, first(), [&](ElementBuilder &b, ValueRange max) {
      return SmallVector<Value>{arith::MaxSIOp::create(b, max[0], order(b))};
    })[0];
    return isOfFloats() ? perRow(last, [](ElementBuilder &b, Value order) { return b.fromOrder(order); }) : last;
  }

  /// Computes one value per row from the reduction's result.
  Value perRow(Value reduced, function_ref<Value(ElementBuilder &, Value)> body) const {
    return kernel.createParallel(kept, accumulator,
                                 [&](ElementBuilder &b) { return body(b, b.load(reduced, b.loops())); });
  }

  /// Returns the extent of the axis as a float.
  Value count(ElementBuilder &b) const {
    if (auto constant = dyn_cast<AffineConstantExpr>(extents[axis]))
      return b.constant(accumulator, constant.getValue());
    Value integer = arith::IndexCastOp::create(b, b.getI32Type(), kernel.createExtent(extents[axis]));
    return arith::SIToFPOp::create(b, accumulator, integer);
  }

  Value mean(Value sum) const {
    return perRow(sum,
                  [&](ElementBuilder &b, Value value) -> Value { return arith::DivFOp::create(b, value, count(b)); });
  }

  /// 1 / sqrt(sum / count + epsilon)
  Value inverseRoot(Value sum, double epsilon) const {
    return perRow(sum, [&](ElementBuilder &b, Value value) -> Value {
      Value mean = arith::DivFOp::create(b, value, count(b));
      Value root = math::SqrtOp::create(b, Value(arith::AddFOp::create(b, mean, b.constant(accumulator, epsilon))));
      return arith::DivFOp::create(b, b.constant(accumulator, 1), root);
    });
  }

  SmallVector<Value> argmax() const {
    Builder builder(kernel.getContext());
    auto none = cast<TypedAttr>(builder.getI32IntegerAttr(std::numeric_limits<int32_t>::max()));
    return kernel.createReduction(extents, axis, {first(), none}, [&](ElementBuilder &b, ValueRange best) {
      Value value = order(b);
      Value index = arith::IndexCastOp::create(b, b.getI32Type(), b.toIndex(b.loop(axis)));
      Value isLarger = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, value, best[0]);
      Value isEqual = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, value, best[0]);
      Value isEarlier = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, index, best[1]);
      Value isBetter = arith::OrIOp::create(b, isLarger, Value(arith::AndIOp::create(b, isEqual, isEarlier)));
      return SmallVector<Value>{arith::SelectOp::create(b, isBetter, value, best[0]),
                                arith::SelectOp::create(b, isBetter, index, best[1])};
    });
  }

  KernelBuilder &kernel;
  Value x;
  unsigned axis;
  RankedTensorType type;
  SmallVector<AffineExpr> extents, kept;
  Type accumulator;
};

/// Returns the row of an element of the result.
Coordinates dropAxis(ArrayRef<Coordinate> at, unsigned axis) {
  Coordinates row(at);
  row.erase(row.begin() + axis);
  return row;
}

unsigned lastAxis(Value x) { return cast<RankedTensorType>(x.getType()).getRank() - 1; }

Value itself(ElementBuilder &, Value x) { return x; }

Value multiply(ElementBuilder &b, Value x, Value y) { return arith::MulFOp::create(b, x, y); }

/// Stores the reduction as the op's result.
SmallVector<Value> keep(KernelBuilder &kernel, Operation *op, Value result) {
  kernel.setTensor(op->getResult(0), kernel.createConverted(result, getElementTypeOrSelf(op->getResult(0).getType())));
  return {result};
}

/// Loads an element of a stored result.
Value loadResult(ElementBuilder &b, Operation *op, ArrayRef<Coordinate> at) {
  (void)b.kernel.getIntermediates(op);
  return b.load(b.kernel.getTensor(op->getResult(0)), at);
}

template <class Op> bool collapseAlongAxis(Op op, RowCollapser &rows) {
  return int64_t(op.getAxis()) >= rows.axes && rows.markFull(op.getX());
}

/// Weight and bias may have the rows, too.
bool collapseNorm(Operation *op, RowCollapser &rows) {
  return rows.rankOf(op->getOperand(0)) > rows.axes && rows.markFull(op->getOperand(0)) &&
         llvm::all_of(op->getOperands().drop_front(), [&](Value operand) {
           return rows.rankOf(operand) > rows.axes ? rows.markFull(operand) : rows.markWhole(operand);
         });
}

} // namespace

//===- layer_norm, rms_norm ---===//

SmallVector<Value> LayerNormOp::decompose(KernelBuilder &kernel) {
  const double epsilon = getEpsilon().convertToDouble();
  AxisReducer reducer(kernel, *this, getX(), lastAxis(getX()));
  auto sumDifferences = [&](Value from, function_ref<Value(ElementBuilder &, Value)> term) {
    return reducer.sum([&](ElementBuilder &b, Value x) -> Value {
      return term(b, arith::SubFOp::create(b, x, b.load(from, reducer.row(b))));
    });
  };
  // A sum of numbers that are far from 0 loses digits, which a small deviation makes large; the differences have few
  // digits. So the mean of equal elements is exact, and that of others is rounded once.
  Value first = reducer.mean(reducer.sum(itself));
  Value mean = reducer.perRow(sumDifferences(first, itself), [&](ElementBuilder &b, Value sum) -> Value {
    return arith::AddFOp::create(b, b.load(first, b.loops()), Value(arith::DivFOp::create(b, sum, reducer.count(b))));
  });
  Value squares =
      sumDifferences(mean, [](ElementBuilder &b, Value difference) { return multiply(b, difference, difference); });
  return {mean, reducer.inverseRoot(squares, epsilon)};
}

Value LayerNormOp::evaluateElement(ElementBuilder &b, ArrayRef<Coordinate> at) {
  SmallVector<Value> reduced(b.kernel.getIntermediates(*this));
  Coordinates row = dropAxis(at, lastAxis(getX()));
  Type accumulator = getAccumulatorType();
  auto read = [&](Value operand, ArrayRef<Coordinate> place) { return b.convert(b.read(operand, place), accumulator); };
  Value difference = arith::SubFOp::create(b, read(getX(), at), b.load(reduced[0], row));
  Value scaled = multiply(b, multiply(b, difference, b.load(reduced[1], row)), read(getWeight(), at.back()));
  Value result = arith::AddFOp::create(b, scaled, read(getBias(), at.back()));
  return b.convert(result, getType().getElementType());
}

bool LayerNormOp::collapseRows(RowCollapser &rows) { return collapseNorm(*this, rows); }

SmallVector<Value> RmsNormOp::decompose(KernelBuilder &kernel) {
  const double epsilon = getEpsilon().convertToDouble();
  AxisReducer reducer(kernel, *this, getX(), lastAxis(getX()));
  Value squares = reducer.sum([](ElementBuilder &b, Value x) { return multiply(b, x, x); });
  return {reducer.inverseRoot(squares, epsilon)};
}

Value RmsNormOp::evaluateElement(ElementBuilder &b, ArrayRef<Coordinate> at) {
  SmallVector<Value> reduced(b.kernel.getIntermediates(*this));
  Coordinates row = dropAxis(at, lastAxis(getX()));
  Type accumulator = getAccumulatorType();
  auto read = [&](Value operand, ArrayRef<Coordinate> place) { return b.convert(b.read(operand, place), accumulator); };
  Value result = multiply(b, multiply(b, read(getX(), at), b.load(reduced[0], row)), read(getWeight(), at.back()));
  return b.convert(result, getType().getElementType());
}

bool RmsNormOp::collapseRows(RowCollapser &rows) { return collapseNorm(*this, rows); }

//===- softmax, log_softmax ---===//

SmallVector<Value> SoftmaxOp::decompose(KernelBuilder &kernel) {
  AxisReducer reducer(kernel, *this, getX(), getAxis());
  Value max = reducer.shift();
  Value exps = kernel.createParallel(reducer.extents, reducer.accumulator, [&](ElementBuilder &b) {
    return b.expBelow(reducer.read(b), b.load(max, reducer.row(b)));
  });
  AxisReducer ofExps(reducer);
  ofExps.x = exps;
  kernel.setTensor(exps, exps);
  Value inverse = ofExps.perRow(ofExps.sum(itself), [](ElementBuilder &b, Value sum) -> Value {
    return arith::DivFOp::create(b, b.constant(sum.getType(), 1), sum);
  });
  return {exps, inverse};
}

Value SoftmaxOp::evaluateElement(ElementBuilder &b, ArrayRef<Coordinate> at) {
  SmallVector<Value> reduced(b.kernel.getIntermediates(*this));
  Value result = multiply(b, b.load(reduced[0], at), b.load(reduced[1], dropAxis(at, getAxis())));
  return b.convert(result, getType().getElementType());
}

bool SoftmaxOp::collapseRows(RowCollapser &rows) { return collapseAlongAxis(*this, rows); }

SmallVector<Value> LogSoftmaxOp::decompose(KernelBuilder &kernel) {
  AxisReducer reducer(kernel, *this, getX(), getAxis());
  Value max = reducer.shift();
  Value sum = reducer.sum([&](ElementBuilder &b, Value x) { return b.expBelow(x, b.load(max, reducer.row(b))); });
  // Stored separately: added to a large maximum, the logarithm would be lost.
  return {max, reducer.perRow(sum, [](ElementBuilder &b, Value sum) -> Value { return math::LogOp::create(b, sum); })};
}

/// Strict: otherwise the code generator would add the two values of the row first.
Value LogSoftmaxOp::evaluateElement(ElementBuilder &b, ArrayRef<Coordinate> at) {
  SmallVector<Value> reduced(b.kernel.getIntermediates(*this));
  Coordinates row = dropAxis(at, getAxis());
  auto strict = [&](Value x, Value y) -> Value {
    auto difference = arith::SubFOp::create(b, x, y);
    difference->setAttr(strictAttrName, b.getUnitAttr());
    return difference;
  };
  Type accumulator = getAccumulatorType();
  Value result =
      strict(strict(b.convert(b.read(getX(), at), accumulator), b.load(reduced[0], row)), b.load(reduced[1], row));
  return b.convert(result, getType().getElementType());
}

bool LogSoftmaxOp::collapseRows(RowCollapser &rows) { return collapseAlongAxis(*this, rows); }

//===- row_scales ---===//

/// Magnitudes are compared as integers; those of non-finite numbers are above all others.
SmallVector<Value> RowScalesOp::decompose(KernelBuilder &kernel) {
  AxisReducer reducer(kernel, *this, getX(), lastAxis(getX()));
  Builder builder(kernel.getContext());
  auto integer = [&](int32_t value) { return kernel.createConstant(builder.getI32IntegerAttr(value)); };
  auto zero = cast<TypedAttr>(builder.getI32IntegerAttr(0));
  Value most = kernel.createReduction(reducer.extents, reducer.axis, zero, [&](ElementBuilder &b, ValueRange most) {
    Value bits = arith::BitcastOp::create(b, b.getI32Type(), reducer.read(b));
    Value magnitude = arith::AndIOp::create(b, bits, integer(0x7FFFFFFF));
    return SmallVector<Value>{arith::MaxSIOp::create(b, most[0], magnitude)};
  })[0];
  return keep(kernel, *this, reducer.perRow(most, [&](ElementBuilder &b, Value bits) -> Value {
    Value isFinite = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, bits, integer(0x7F800000));
    bits = arith::SelectOp::create(b, isFinite, bits, integer(0x7FC00000));
    auto scale = arith::DivFOp::create(b, Value(arith::BitcastOp::create(b, b.getF32Type(), bits)),
                                       b.constant(b.getF32Type(), 127));
    scale->setAttr(strictAttrName, b.getUnitAttr());
    return scale;
  }));
}

Value RowScalesOp::evaluateElement(ElementBuilder &b, ArrayRef<Coordinate> at) { return loadResult(b, *this, at); }
bool RowScalesOp::collapseRows(RowCollapser &rows) { return rows.rankOf(getX()) > rows.axes && rows.markFull(getX()); }

//===- mean, sum, max, argmax, cumsum ---===//

/// Differences from the first element are strict: otherwise the code generator could subtract it from the sum.
SmallVector<Value> MeanOp::decompose(KernelBuilder &kernel) {
  AxisReducer reducer(kernel, *this, getX(), getAxis());
  if (!getShifted())
    return keep(kernel, *this, reducer.mean(reducer.sum(itself)));
  Value differences = reducer.sum([&](ElementBuilder &b, Value x) -> Value {
    auto difference = arith::SubFOp::create(b, x, reducer.readFirst(b, reducer.row(b)));
    difference->setAttr(strictAttrName, b.getUnitAttr());
    return difference;
  });
  return keep(kernel, *this, reducer.perRow(differences, [&](ElementBuilder &b, Value sum) -> Value {
    Value mean = arith::DivFOp::create(b, sum, reducer.count(b));
    return arith::AddFOp::create(b, reducer.readFirst(b, b.loops()), mean);
  }));
}
SmallVector<Value> SumOp::decompose(KernelBuilder &kernel) {
  return keep(kernel, *this, AxisReducer(kernel, *this, getX(), getAxis()).sum(itself));
}
SmallVector<Value> MaxOp::decompose(KernelBuilder &kernel) {
  return keep(kernel, *this, AxisReducer(kernel, *this, getX(), getAxis()).max());
}
SmallVector<Value> ArgmaxOp::decompose(KernelBuilder &kernel) {
  return keep(kernel, *this, AxisReducer(kernel, *this, getX(), getAxis()).argmax()[1]);
}

/// linalg has no running sums, so each element is a separate sum. Targets match it (compiler/kernel/CumulativeSum.h)
/// and compute a line in a single pass.
SmallVector<Value> CumsumOp::decompose(KernelBuilder &kernel) {
  kernel.prepareRepeatedReads(getX());
  SmallVector<AffineExpr> extents = getExtents(getType());
  const unsigned axis = getAxis(), added = extents.size();
  extents.push_back(extents[axis]);
  Type accumulator = getAccumulatorType();
  auto zero = cast<TypedAttr>(Builder(getContext()).getZeroAttr(accumulator));
  const auto isBefore = getReverse() ? arith::CmpIPredicate::sge : arith::CmpIPredicate::sle;
  Value sums = kernel.createReduction(extents, added, zero, [&](ElementBuilder &b, ValueRange sum) {
    Coordinates at = b.loops();
    at[axis] = at.pop_back_val();
    Value term = b.convert(b.read(getX(), at), accumulator);
    Value counts = arith::CmpIOp::create(b, isBefore, b.toIndex(b.loop(added)), b.toIndex(b.loop(axis)));
    term = arith::SelectOp::create(b, counts, term, Value(arith::ConstantOp::create(b, zero)));
    return SmallVector<Value>{isa<FloatType>(accumulator) ? Value(arith::AddFOp::create(b, sum[0], term))
                                                          : Value(arith::AddIOp::create(b, sum[0], term))};
  })[0];
  return keep(kernel, *this, sums);
}

#define KILN_REDUCTION(OP)                                                                                             \
  Value OP::evaluateElement(ElementBuilder &b, ArrayRef<Coordinate> at) { return loadResult(b, *this, at); }           \
  bool OP::collapseRows(RowCollapser &rows) { return collapseAlongAxis(*this, rows); }
KILN_REDUCTION(MeanOp)
KILN_REDUCTION(SumOp)
KILN_REDUCTION(MaxOp)
KILN_REDUCTION(ArgmaxOp)
KILN_REDUCTION(CumsumOp)
#undef KILN_REDUCTION

} // namespace mlir::kiln
