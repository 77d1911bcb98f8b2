// SPDX-License-Identifier: Apache-2.0
//
// conv2d: the padded image as a separate tensor, if there is padding, then one contraction over channels and window,
// whose operands are read through affine maps. Pools: one reduction over the window, with guarded reads of the image.
// resize_bilinear: four elements read by index.
#include "compiler/dialect/lowering/KernelBuilder.h"
#include "compiler/dialect/lowering/RowCollapser.h"

namespace mlir::kiln {
namespace {

/// Reads an element of an image with `padding` more elements on every side; `at` includes the padding. Padding elements
/// are `outside` or, if that is null, the nearest element.
Value readPadded(ElementBuilder &b, Value image, Coordinates at, ArrayRef<int64_t> padding, TypedAttr outside) {
  SmallVector<AffineExpr> extents = getExtents(cast<RankedTensorType>(image.getType()));
  Value isInside;
  for (unsigned side = 0; side < 2; ++side) {
    unsigned axis = extents.size() - 3 + side;
    if (padding[side] == 0)
      continue;
    Value zero = b.kernel.createConstant(b.getIndexAttr(0)), one = b.kernel.createConstant(b.getIndexAttr(1));
    Value size = b.kernel.createExtent(extents[axis]), last = arith::SubIOp::create(b, size, one);
    Value index = arith::SubIOp::create(b, b.toIndex(at[axis]), b.kernel.createConstant(b.getIndexAttr(padding[side])));
    Value isOn = arith::AndIOp::create(b, Value(arith::CmpIOp::create(b, arith::CmpIPredicate::sge, index, zero)),
                                       Value(arith::CmpIOp::create(b, arith::CmpIPredicate::slt, index, size)));
    isInside = isInside ? Value(arith::AndIOp::create(b, isInside, isOn)) : isOn;
    at[axis] = Value(arith::MaxSIOp::create(b, Value(arith::MinSIOp::create(b, index, last)), zero));
  }
  Value element = b.read(image, at);
  return isInside && outside ? Value(arith::SelectOp::create(b, isInside, element, b.kernel.createConstant(outside)))
                             : element;
}

/// Stores the padded image; null if there is no padding, so that the image is read in place.
Value storePadded(KernelBuilder &kernel, Value image, ArrayRef<int64_t> padding, TypedAttr outside) {
  if (padding[0] == 0 && padding[1] == 0) {
    kernel.prepareRepeatedReads(image);
    return {};
  }
  auto type = cast<RankedTensorType>(image.getType());
  SmallVector<AffineExpr> extents = getExtents(type);
  for (unsigned side = 0; side < 2; ++side) {
    AffineExpr &extent = extents[extents.size() - 3 + side];
    extent = canonicalExtent(extent + 2 * padding[side]);
  }
  return kernel.createParallel(extents, type.getElementType(),
                               [&](ElementBuilder &b) { return readPadded(b, image, b.loops(), padding, outside); });
}

/// Whether outputs see all channels, one channel each, or a group of channels, which then becomes a separate loop.
enum class Form { Whole, Depthwise, Grouped };

Form formOf(Conv2dOp op) {
  if (op.getGroups() == 1)
    return Form::Whole;
  ArrayRef<int64_t> weight = cast<RankedTensorType>(op.getWeight().getType()).getShape();
  return weight[0] == int64_t(op.getGroups()) && weight[1] == 1 ? Form::Depthwise : Form::Grouped;
}

/// Returns the axes of height and width.
SmallVector<int64_t> imageAxes(Type type) {
  const int64_t rank = cast<RankedTensorType>(type).getRank();
  return {rank - 3, rank - 2};
}

TypedAttr floatAttr(Value image, double value) {
  return cast<TypedAttr>(FloatAttr::get(computedType(image.getType()), value));
}

} // namespace

//===- conv2d ---===//

namespace {

/// Returns the axes of a result, except the channels, that have more than one element.
SmallVector<unsigned> longAxes(Conv2dOp op) {
  SmallVector<unsigned> axes;
  const SmallVector<AffineExpr> extents = getExtents(cast<RankedTensorType>(op.getType()));
  for (unsigned axis = 0; axis + 1 < extents.size(); ++axis)
    if (!isConstant(extents[axis], 1))
      axes.push_back(axis);
  return axes;
}

/// Whether a convolution has so few results, all along one axis, that it costs as much as reading its weight. It is
/// then lowered as a skinny GEMM whose K is channels and window in the weight's order. Not in batch-invariant
/// libraries, where the order of sums must not depend on the number of rows.
bool isOfFewRows(KernelBuilder &kernel, Conv2dOp op) {
  constexpr int64_t mostRows = 16;
  SmallVector<AffineExpr> pixels = getExtents(cast<RankedTensorType>(op.getType()));
  pixels.pop_back();
  return !kernel.keepsOrder() && formOf(op) == Form::Whole && longAxes(op).size() <= 1 &&
         kernel.largestProduct(pixels) <= mostRows;
}

/// The skinny GEMM of `isOfFewRows`, [rows, outputs], or [outputs] for one row. `padded`: read instead of the image
/// unless null.
Value multiplyFewRows(KernelBuilder &kernel, Conv2dOp op, Value padded) {
  const SmallVector<unsigned> axes = longAxes(op);
  const SmallVector<AffineExpr> extents = getExtents(cast<RankedTensorType>(op.getType()));
  const ArrayRef<int64_t> window = op.getWeight().getType().getShape();
  SmallVector<AffineExpr> loops;
  if (!axes.empty())
    loops.push_back(extents[axes.front()]);
  loops.push_back(extents.back());
  const unsigned output = loops.size() - 1, kLoop = loops.size();
  loops.push_back(getAffineConstantExpr(window[1] * window[2] * window[3], op.getContext()));
  const Type accumulator = op.getAccumulatorType();
  auto zero = cast<TypedAttr>(FloatAttr::get(accumulator, 0));
  return kernel.createReduction(loops, kLoop, zero, [&](ElementBuilder &b, ValueRange sum) {
    const AffineExpr k = b.loop(kLoop),
                     inWindow[] = {b.simplify(k.floorDiv(window[3]) % window[2]), b.simplify(k % window[3])};
    const AffineExpr channel = b.simplify(k.floorDiv(window[2] * window[3]));
    Coordinates from;
    for (unsigned axis = 0; axis + 1 < extents.size(); ++axis) {
      AffineExpr place = !axes.empty() && axis == axes.front() ? b.loop(0) : b.getAffineConstantExpr(0);
      if (const int side = int(axis + 3) - int(extents.size()); side >= 0)
        place = place * op.getStride()[side] + inWindow[side] * op.getDilation()[side];
      from.push_back(place);
    }
    from.push_back(channel);
    Value x = b.convert(padded ? b.load(padded, from) : b.read(op.getX(), from), accumulator);
    Value y = b.convert(b.read(op.getWeight(), {b.loop(output), channel, inWindow[0], inWindow[1]}), accumulator);
    return SmallVector<Value>{arith::AddFOp::create(b, sum[0], Value(arith::MulFOp::create(b, x, y)))};
  })[0];
}

} // namespace

SmallVector<Value> Conv2dOp::decompose(KernelBuilder &kernel) {
  Conv2dOp op = *this;
  Value image = op.getX(), weight = op.getWeight();
  auto constant = [&](int64_t value) { return getAffineConstantExpr(value, op.getContext()); };
  ArrayRef<int64_t> window = cast<RankedTensorType>(weight.getType()).getShape();
  Type accumulator = op.getAccumulatorType();
  auto zero = cast<TypedAttr>(FloatAttr::get(accumulator, 0));
  Value padded = storePadded(kernel, image, op.getPadding(), floatAttr(image, 0));
  kernel.prepareRepeatedReads(weight);
  if (isOfFewRows(kernel, op))
    return {multiplyFewRows(kernel, op, padded)};
  Form form = formOf(op);
  // Vectorised over channels: their weights are contiguous for each window element.
  Value lanes;
  if (form == Form::Depthwise)
    lanes =
        kernel.createParallel({constant(window[2]), constant(window[3]), constant(window[0])},
                              getElementTypeOrSelf(weight.getType()), [&](ElementBuilder &b) {
                                return b.read(weight, {b.loop(2), b.getAffineConstantExpr(0), b.loop(0), b.loop(1)});
                              });
  // Loops: those of the result, with outputs as [group, output of the group] if grouped, then channels, rows, columns.
  SmallVector<AffineExpr> loops = getExtents(cast<RankedTensorType>(op.getType()));
  unsigned output = loops.size() - 1, rows = output - 2;
  int64_t groups = op.getGroups();
  if (form == Form::Grouped) {
    loops.back() = constant(groups);
    loops.push_back(constant(window[0] / groups));
  }
  SmallVector<unsigned> reduced;
  for (int64_t extent : window.drop_front(form == Form::Depthwise ? 2 : 1)) {
    reduced.push_back(loops.size());
    loops.push_back(constant(extent));
  }
  Value product = kernel.createReduction(loops, reduced, zero, [&](ElementBuilder &b, ValueRange sum) {
    Coordinates from;
    for (unsigned i = 0; i < rows; ++i)
      from.push_back(b.loop(i));
    for (unsigned side = 0; side < 2; ++side)
      from.push_back(b.loop(rows + side) * op.getStride()[side] +
                     b.loop(loops.size() - 2 + side) * op.getDilation()[side]);
    AffineExpr row = b.loop(loops.size() - 2), column = b.loop(loops.size() - 1), channel = b.loop(reduced.front());
    Value y;
    if (form == Form::Depthwise) {
      from.push_back(b.loop(output));
      y = b.load(lanes, {row, column, b.loop(output)});
    } else if (form == Form::Grouped) {
      from.push_back(b.loop(output) * window[1] + channel);
      y = b.read(weight, {b.loop(output) * (window[0] / groups) + b.loop(output + 1), channel, row, column});
    } else {
      from.push_back(channel);
      y = b.read(weight, {b.loop(output), channel, row, column});
    }
    Value x = b.convert(padded ? b.load(padded, from) : b.read(image, from), accumulator);
    y = b.convert(y, accumulator);
    return SmallVector<Value>{arith::AddFOp::create(b, sum[0], Value(arith::MulFOp::create(b, x, y)))};
  })[0];
  if (form != Form::Grouped && !op.getBias() && accumulator == getElementTypeOrSelf(op.getType()))
    kernel.setTensor(op.getResult(), product);
  return {product};
}

Value Conv2dOp::evaluateElement(ElementBuilder &b, ArrayRef<Coordinate> at) {
  Value product = b.kernel.getIntermediates(*this)[0];
  Coordinates split(at);
  if (isOfFewRows(b.kernel, *this)) {
    const SmallVector<unsigned> axes = longAxes(*this);
    split = {at.back()};
    if (!axes.empty())
      split.insert(split.begin(), at[axes.front()]);
  } else if (formOf(*this) == Form::Grouped) {
    int64_t each = getWeight().getType().getDimSize(0) / int64_t(getGroups());
    split.pop_back();
    split.push_back(b.simplify(at.back().expr.floorDiv(each)));
    split.push_back(b.simplify(at.back().expr % each));
  }
  Value element = b.load(product, split);
  if (getBias())
    element = arith::AddFOp::create(b, element, b.convert(b.read(getBias(), at.back()), element.getType()));
  return b.convert(element, getElementTypeOrSelf(getType()));
}

bool Conv2dOp::collapseRows(RowCollapser &) { return false; }
SmallVector<int64_t> Conv2dOp::getResizedAxes() { return imageAxes(getType()); }

AffineExpr Conv2dOp::getFlops() {
  SmallVector<AffineExpr> window = getExtents(cast<RankedTensorType>(getWeight().getType()));
  return countFlops(getResult(), ArrayRef(window).drop_front());
}

//===- max_pool2d, avg_pool2d ---===//

static SmallVector<Value> decomposePool(KernelBuilder &kernel, KernelOpInterface op) {
  Value image = op->getOperand(0);
  auto pair = [&](StringRef name) { return op->getAttrOfType<DenseI64ArrayAttr>(name).asArrayRef(); };
  ArrayRef<int64_t> window = pair("kernel"), stride = pair("stride"), padding = pair("padding");
  bool isMax = isa<MaxPool2dOp>(op);
  kernel.prepareRepeatedReads(image);
  SmallVector<AffineExpr> extents = getExtents(cast<RankedTensorType>(op->getResult(0).getType())), loops = extents;
  unsigned rank = extents.size();
  for (int64_t extent : window)
    loops.push_back(getAffineConstantExpr(extent, op->getContext()));
  // Every window has elements of the image, and a duplicated element does not change a maximum.
  Type accumulator = op.getAccumulatorType();
  TypedAttr outside = isMax ? TypedAttr() : floatAttr(image, 0);
  auto read = [&](ElementBuilder &b) {
    Coordinates from = b.loops();
    from.truncate(rank);
    for (unsigned side = 0; side < 2; ++side)
      from[rank - 3 + side] = b.loop(rank - 3 + side) * stride[side] + b.loop(rank + side);
    return b.convert(readPadded(b, image, from, padding, outside), accumulator);
  };
  TypedAttr first = isMax ? TypedAttr(Builder(op->getContext()).getI32IntegerAttr(std::numeric_limits<int32_t>::min()))
                          : cast<TypedAttr>(FloatAttr::get(accumulator, 0));
  Value reduced = kernel.createReduction(loops, {rank, rank + 1}, first, [&](ElementBuilder &b, ValueRange soFar) {
    return SmallVector<Value>{isMax ? Value(arith::MaxSIOp::create(b, soFar[0], b.toOrder(read(b))))
                                    : Value(arith::AddFOp::create(b, soFar[0], read(b)))};
  })[0];
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  Value result = kernel.createParallel(extents, element, [&](ElementBuilder &b) -> Value {
    Value value = b.load(reduced, b.loops());
    if (isMax)
      return b.convert(b.fromOrder(value), element);
    Value mean = arith::MulFOp::create(b, value, b.constant(value.getType(), 1.0 / double(window[0] * window[1])));
    return b.convert(mean, element);
  });
  kernel.setTensor(op->getResult(0), result);
  return {result};
}

/// Loads an element of a stored result.
static Value loadPooled(ElementBuilder &b, Operation *op, ArrayRef<Coordinate> at) {
  return b.load(b.kernel.getIntermediates(op)[0], at);
}

#define KILN_POOL(OP)                                                                                                  \
  SmallVector<Value> OP::decompose(KernelBuilder &kernel) { return decomposePool(kernel, *this); }                     \
  Value OP::evaluateElement(ElementBuilder &b, ArrayRef<Coordinate> at) { return loadPooled(b, *this, at); }           \
  bool OP::collapseRows(RowCollapser &) { return false; }                                                              \
  SmallVector<int64_t> OP::getResizedAxes() { return imageAxes(getType()); }
KILN_POOL(MaxPool2dOp)
KILN_POOL(AvgPool2dOp)
#undef KILN_POOL

//===- resize_bilinear ---===//

/// Positions are counted in units of 1 / (2 H') as integers, so that neighbours are exact and only the weights are
/// rounded.
Value ResizeBilinearOp::evaluateElement(ElementBuilder &b, ArrayRef<Coordinate> at) {
  auto from = cast<RankedTensorType>(getX().getType()), to = cast<RankedTensorType>(getType());
  Type type = computedType(to);
  auto number = [&](int64_t value) { return b.kernel.createConstant(b.getIndexAttr(value)); };
  unsigned first = to.getRank() - 3;
  Value neighbours[2][2], weights[2][2]; // by spatial axis and neighbour
  for (unsigned side = 0; side < 2; ++side) {
    int64_t before = from.getDimSize(first + side), after = to.getDimSize(first + side);
    Value doubled = arith::MulIOp::create(b, b.toIndex(at[first + side]), number(2 * before));
    Value place =
        arith::MaxSIOp::create(b, Value(arith::AddIOp::create(b, doubled, number(before - after))), number(0));
    Value low = arith::FloorDivSIOp::create(b, place, number(2 * after));
    Value rest = arith::SubIOp::create(b, place, Value(arith::MulIOp::create(b, low, number(2 * after))));
    Value next = arith::AddIOp::create(b, low, number(1));
    neighbours[side][0] = low;
    neighbours[side][1] = arith::MinSIOp::create(b, next, number(before - 1));
    Value parts = arith::SIToFPOp::create(b, type, Value(arith::IndexCastOp::create(b, b.getI32Type(), rest)));
    weights[side][1] = arith::MulFOp::create(b, parts, b.constant(type, 0.5 / double(after)));
    weights[side][0] = arith::SubFOp::create(b, b.constant(type, 1), weights[side][1]);
  }
  Value sum;
  for (unsigned row = 0; row < 2; ++row)
    for (unsigned column = 0; column < 2; ++column) {
      Coordinates source(at);
      source[first] = neighbours[0][row];
      source[first + 1] = neighbours[1][column];
      Value weight = arith::MulFOp::create(b, weights[0][row], weights[1][column]);
      Value term = arith::MulFOp::create(b, weight, b.read(getX(), source));
      sum = sum ? Value(arith::AddFOp::create(b, sum, term)) : term;
    }
  return sum;
}

bool ResizeBilinearOp::collapseRows(RowCollapser &) { return false; }

} // namespace mlir::kiln
