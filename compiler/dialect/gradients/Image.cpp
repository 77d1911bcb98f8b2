// SPDX-License-Identifier: Apache-2.0
//
// Derivatives of the ops on images [n, H, W, C], by windows (im2col): the windows of a convolution are the rows of a
// matrix, so that both of its gradients are GEMMs, and gradients of overlapping windows are added.
#include "compiler/dialect/gradients/GradientBuilder.h"

#include <limits>

namespace mlir::kiln {

namespace {

int64_t fixed(AffineExpr extent) { return cast<AffineConstantExpr>(extent).getValue(); }

/// Windows along an axis of extent `whole`: element k of window o is at o stride + k dilation - padding.
struct Windows {
  AffineExpr whole, count;
  int64_t kernel, stride, padding, dilation;

  bool areSideBySide() const { return stride == kernel && padding == 0 && dilation == 1; }
};

class WindowBuilder {
public:
  WindowBuilder(GradientBuilder &b, MLIRContext *context) : b(b), context(context) {}

  /// Gathers windows: [..., whole, ...] -> [..., count, kernel, ...], with `outside` for elements outside of the axis.
  Value take(Value x, int64_t axis, const Windows &windows, double outside) {
    if (windows.areSideBySide())
      return split(takeFirst(x, axis, windows.count * windows.kernel), axis, windows.count, windows.kernel);
    x = extend(x, axis, constant(windows.padding), constant(windows.padding), outside);
    Value numbers = b.create<PositionsOp>(expandAxis(x, axis, windows.count), axis);
    Value first = b.create<MulOp>(b.reshape(numbers, {windows.count, constant(1)}),
                                  integers(static_cast<int32_t>(windows.stride)));
    SmallVector<int32_t> within;
    for (int64_t k = 0; k < windows.kernel; ++k)
      within.push_back(static_cast<int32_t>(k * windows.dilation));
    return b.create<GatherOp>(x, b.create<AddOp>(first, integers(within)), axis);
  }

  /// The transpose of take: each element is the sum of the window elements that were taken from it.
  Value add(Value x, int64_t axis, const Windows &windows) {
    if (windows.areSideBySide()) {
      const AffineExpr covered = canonicalExtent(windows.count * windows.kernel);
      return extend(join(x, axis), axis, constant(0), canonicalExtent(windows.whole - covered), 0);
    }
    const AffineExpr padded = windows.whole + 2 * windows.padding,
                     spread = canonicalExtent((windows.count - 1) * windows.stride + 1);
    Value sum;
    for (int64_t k = 0; k < windows.kernel; ++k) {
      Value one = join(slice(x, axis + 1, k, constant(1)), axis);
      if (windows.stride > 1) {
        Value apart = split(one, axis, windows.count, 1);
        apart = join(extend(apart, axis + 1, constant(0), constant(windows.stride - 1), 0), axis);
        one = takeFirst(apart, axis, spread);
      }
      const AffineExpr before = constant(k * windows.dilation);
      one = extend(one, axis, before, canonicalExtent(padded - before - spread), 0);
      sum = sum ? b.add(sum, one) : one;
    }
    return slice(sum, axis, windows.padding, windows.whole);
  }

  AffineExpr constant(int64_t value) { return getAffineConstantExpr(value, context); }

private:
  Value slice(Value x, int64_t axis, int64_t start, AffineExpr extent) {
    SmallVector<AffineExpr> extents = getExtents(rankedType(x));
    if (extents[axis] == extent)
      return x;
    extents[axis] = extent;
    return b.createAs<SliceOp>(b.typeOf(extents, x), x, axis, start, /*at_end=*/false);
  }
  Value takeFirst(Value x, int64_t axis, AffineExpr extent) { return slice(x, axis, 0, canonicalExtent(extent)); }
  Value extend(Value x, int64_t axis, AffineExpr before, AffineExpr after, double value) {
    SmallVector<AffineExpr> extents = getExtents(rankedType(x));
    SmallVector<Value> parts{x};
    auto filled = [&](AffineExpr extent) {
      extents[axis] = extent;
      return b.expandTo(b.number(x, value), b.typeOf(extents, x));
    };
    if (!isConstant(before, 0))
      parts.insert(parts.begin(), filled(before));
    if (!isConstant(after, 0))
      parts.push_back(filled(after));
    return parts.size() == 1 ? x : b.create<ConcatOp>(parts, axis);
  }
  /// Returns a value with this extent at the axis.
  Value expandAxis(Value x, int64_t axis, AffineExpr extent) {
    SmallVector<AffineExpr> extents(axis + 1, constant(1));
    extents[axis] = extent;
    return b.zeros(b.typeOf(extents, x));
  }
  Value split(Value x, int64_t axis, AffineExpr outer, int64_t inner) {
    SmallVector<AffineExpr> extents = getExtents(rankedType(x));
    extents[axis] = outer;
    extents.insert(extents.begin() + axis + 1, constant(inner));
    return b.reshape(x, extents);
  }
  /// Collapses an axis and the next one.
  Value join(Value x, int64_t axis) {
    SmallVector<AffineExpr> extents = getExtents(rankedType(x));
    extents[axis] = getProduct({extents[axis], extents[axis + 1]}, context);
    extents.erase(extents.begin() + axis + 1);
    return b.reshape(x, extents);
  }
  Value integers(ArrayRef<int32_t> values) {
    auto type = RankedTensorType::get({static_cast<int64_t>(values.size())}, IntegerType::get(context, 32));
    return b.create<ConstantOp>(DenseIntElementsAttr::get(type, values));
  }

  GradientBuilder &b;
  MLIRContext *context;
};

/// An image and windows along both of its spatial axes.
class Image {
public:
  Image(GradientBuilder &b, Value x, Value y, ArrayRef<int64_t> kernel, ArrayRef<int64_t> stride,
        ArrayRef<int64_t> padding, ArrayRef<int64_t> dilation)
      : b(b), builder(b, x.getContext()), x(x) {
    const SmallVector<AffineExpr> from = getExtents(rankedType(x)), to = getExtents(rankedType(y));
    const size_t first = from.size() - 3;
    images = getProduct(ArrayRef(from).take_front(first), x.getContext());
    channels = from.back();
    for (int side = 0; side < 2; ++side)
      windows[side] = {from[first + side], to[first + side], kernel[side], stride[side], padding[side], dilation[side]};
    rows = getProduct({images, windows[0].count}, x.getContext());
  }

  /// Gathers all windows as [n Ho, Wo, kh, kw, C], with `outside` for elements outside of the image.
  Value takeWindows(double outside) {
    Value taken = builder.take(b.reshape(x, {images, windows[0].whole, product({windows[1].whole, channels})}), 1,
                               windows[0], outside);
    taken = builder.take(b.reshape(taken, {product({rows, kernel(0)}), windows[1].whole, channels}), 1, windows[1],
                         outside);
    taken = b.reshape(taken, {rows, kernel(0), windows[1].count, kernel(1), channels});
    return b.transpose(taken, {0, 2, 1, 3, 4});
  }
  /// The transpose of takeWindows: maps gradients of the windows to those of the image.
  Value addWindows(Value gradients) {
    Value sum =
        b.transpose(b.reshape(gradients, {rows, windows[1].count, kernel(0), kernel(1), channels}), {0, 2, 1, 3, 4});
    sum =
        builder.add(b.reshape(sum, {product({rows, kernel(0)}), windows[1].count, kernel(1), channels}), 1, windows[1]);
    sum = builder.add(b.reshape(sum, {images, windows[0].count, kernel(0), product({windows[1].whole, channels})}), 1,
                      windows[0]);
    return b.reshape(sum, getExtents(rankedType(x)));
  }

  AffineExpr constant(int64_t value) { return builder.constant(value); }
  AffineExpr product(ArrayRef<AffineExpr> extents) { return getProduct(extents, x.getContext()); }
  AffineExpr kernel(int side) { return constant(windows[side].kernel); }
  AffineExpr places() { return product({rows, windows[1].count}); }
  int64_t windowSize() const { return windows[0].kernel * windows[1].kernel; }

private:
  GradientBuilder &b;
  WindowBuilder builder;
  Value x;
  Windows windows[2];
  AffineExpr images, channels, rows; // rows: output rows of all images
};

/// [rows, groups * width] -> [groups, rows, width]
Value byGroups(GradientBuilder &b, Value x, AffineExpr groups, AffineExpr width) {
  return b.transpose(b.reshape(x, {getExtents(rankedType(x)).front(), groups, width}), {1, 0, 2});
}

} // namespace

KILN_GRADIENT(Conv2dOp) {
  const SmallVector<AffineExpr> weight = getExtents(rankedType(getWeight())); // [O, C / groups, kh, kw]
  const auto groups = static_cast<int64_t>(getGroups());
  Image image(b, getX(), getResult(), {fixed(weight[2]), fixed(weight[3])}, getStride(), getPadding(), getDilation());
  const AffineExpr outputs = image.constant(fixed(weight[0]) / groups), group = image.constant(groups),
                   kExtent = image.product({weight[2], weight[3], weight[1]});
  // [groups, pixels, outputs], and windows and weights with the channels last.
  Value dy = byGroups(b, b.asMatrix(gradients[0]), group, outputs);
  Value windows =
      b.reshape(image.takeWindows(0), {image.places(), image.constant(image.windowSize()), group, weight[1]});
  Value columns = b.reshape(b.transpose(windows, {2, 0, 1, 3}), {group, image.places(), kExtent});
  Value ofWeight = b.create<MatmulOp>(b.transposeMatrix(dy), columns, /*transpose_b=*/false);
  ofWeight = b.transpose(b.reshape(ofWeight, {weight[0], weight[2], weight[3], weight[1]}), {0, 3, 1, 2});

  Value factors = b.reshape(b.transpose(getWeight(), {0, 2, 3, 1}), {group, outputs, kExtent});
  Value ofWindows = b.create<MatmulOp>(dy, factors, /*transpose_b=*/false);
  ofWindows = b.reshape(ofWindows, {group, image.places(), image.constant(image.windowSize()), weight[1]});
  SmallVector<Value> result{image.addWindows(b.transpose(ofWindows, {1, 2, 0, 3})), ofWeight};
  if (getBias())
    result.push_back(b.sumTo(gradients[0], rankedType(getBias())));
  return result;
}

/// The gradient goes to the first of the largest elements.
KILN_GRADIENT(MaxPool2dOp) {
  Image image(b, getX(), getResult(), getKernel(), getStride(), getPadding(), {1, 1});
  const AffineExpr size = image.constant(image.windowSize()), channels = getExtents(getType()).back();
  Value windows = b.reshape(image.takeWindows(std::numeric_limits<float>::lowest()), {image.places(), size, channels});
  Value largest = b.keepAxis(b.create<ArgmaxOp>(windows, 1), windows, 1);
  Value numbers = b.reshape(b.create<PositionsOp>(windows, 1), {size, image.constant(1)});
  Value dy = b.reshape(gradients[0], {image.places(), image.constant(1), channels});
  return {image.addWindows(b.where(b.create<EqualOp>(numbers, largest), dy, b.number(dy, 0)))};
}

KILN_GRADIENT(AvgPool2dOp) {
  Image image(b, getX(), getResult(), getKernel(), getStride(), getPadding(), {1, 1});
  const AffineExpr size = image.constant(image.windowSize()), channels = getExtents(getType()).back();
  Value part = b.scale(gradients[0], 1.0 / static_cast<double>(image.windowSize()));
  Value each = b.reshape(part, {image.places(), image.constant(1), channels});
  return {image.addWindows(b.expandTo(each, b.typeOf({image.places(), size, channels}, each)))};
}

/// Maps the gradient of images [n, H', W', C] back through the resizing along one axis: row i of the axis is
/// distributed to the two neighbours of max((i + 1/2) H / H' - 1/2, 0), with weights that add up to 1.
static Value undoResizing(GradientBuilder &b, Value dy, int64_t axis, Value ratio, AffineExpr from) {
  MLIRContext *context = dy.getContext();
  const AffineExpr one = getAffineConstantExpr(1, context);
  SmallVector<AffineExpr> extents = getExtents(rankedType(dy)), others(extents);
  const AffineExpr to = extents[axis];
  others.erase(others.begin() + axis);
  SmallVector<int64_t> front{axis}, back;
  for (int64_t other = 0; other < rankedType(dy).getRank(); ++other) {
    if (other != axis)
      front.push_back(other);
    back.push_back(other == axis ? 0 : other < axis ? other + 1 : other);
  }
  auto ofType = [&](Value x, Type element) { return b.createAs<CastOp>(rankedType(x).clone(element), x); };
  Value number = ofType(b.create<PositionsOp>(dy, axis), rankedType(dy).getElementType()); // [H']
  Value place = b.sub(b.mul(b.add(number, b.number(dy, 0.5)), ratio), b.number(dy, 0.5));
  place = b.create<MaximumOp>(place, b.number(dy, 0));
  Value floor = b.create<FloorOp>(place), rest = b.reshape(b.sub(place, floor), {to, one});
  Type integers = IntegerType::get(context, 32);
  Value low = ofType(floor, integers);
  auto scalar = RankedTensorType::get({}, integers);
  Value high = b.add(low, b.create<ConstantOp>(DenseElementsAttr::get(scalar, int32_t{1}))); // may exceed the last
                                                                                             // index: it is clamped
  Value rows = b.reshape(b.transpose(dy, front), {to, getProduct(others, context)});
  Value parts = b.create<ConcatOp>(SmallVector<Value>{b.mul(rows, b.sub(b.number(dy, 1), rest)), b.mul(rows, rest)}, 0);
  Value sums = b.scatterAdd(b.create<ConcatOp>(SmallVector<Value>{low, high}, 0), parts, from);
  others.insert(others.begin(), from);
  return b.transpose(b.reshape(sums, others), back);
}

KILN_GRADIENT(ResizeBilinearOp) {
  const SmallVector<AffineExpr> from = getExtents(rankedType(getX())), to = getExtents(getType());
  const auto first = static_cast<int64_t>(to.size()) - 3;
  auto ratio = [&](int64_t axis) {
    return b.div(b.reciprocalExtent(getResult(), axis), b.reciprocalExtent(getX(), axis));
  };
  const AffineExpr images = getProduct(ArrayRef(to).take_front(first), getContext());
  Value dy = b.reshape(gradients[0], {images, to[first], to[first + 1], to[first + 2]});
  dy = undoResizing(b, dy, 1, ratio(first), from[first]);
  dy = undoResizing(b, dy, 2, ratio(first + 1), from[first + 1]);
  return {b.reshape(dy, from)};
}

} // namespace mlir::kiln
