// SPDX-License-Identifier: Apache-2.0
//
// The ops on images [..., H, W, C] other than conv2d: max_pool2d, avg_pool2d, resize_bilinear.
#include <algorithm>
#include <cmath>

#include "compiler/interpreter/OpCall.h"

namespace kiln::interpreter {
namespace {

/// The dimensions of an image, and the offsets of its pixels.
struct Image {
  explicit Image(const TensorShape &shape)
      : height(shape[shape.size() - 3]), width(shape[shape.size() - 2]), channels(shape.back()) {}
  std::int64_t at(std::int64_t image, std::int64_t row, std::int64_t column, std::int64_t channel) const {
    return ((image * height + row) * width + column) * channels + channel;
  }
  std::int64_t height, width, channels;
};

/// Returns the maximum of a window, or the mean, for which padding counts as zeros.
Value poolWindow(const OpCall &call, const Arithmetic &arithmetic, const std::vector<Value> &inside) {
  if (call.node.op == Op::max_pool2d) {
    Value most = inside[0];
    for (Value x : inside)
      most = arithmetic.maximum(most, x);
    return most;
  }
  Sum sum(arithmetic);
  for (Value x : inside)
    sum.add(x);
  const Pair kernel = call.attributes().window.kernel;
  return arithmetic.div(sum.result(), exact(static_cast<double>(kernel.height) * kernel.width));
}

Tensor evaluatePool(const OpCall &call) {
  const Tensor &x = call[0];
  const Image from(x.shape);
  const Window &w = call.attributes().window;
  TensorShape shape = x.shape;
  shape[shape.size() - 3] = windowCount(call, from.height, w.kernel.height, w.stride.height, w.padding.height, 1);
  shape[shape.size() - 2] = windowCount(call, from.width, w.kernel.width, w.stride.width, w.padding.width, 1);
  call.require(2 * w.padding.height <= w.kernel.height && 2 * w.padding.width <= w.kernel.width,
               "padding is too large; expected at most half the kernel"); // so each window has a pixel
  Tensor result = call.result(shape, x.element);
  const Image to(shape);
  const Arithmetic arithmetic(x.element);
  TensorShape index(4, 0);
  const TensorShape extents{result.size() / (to.height * to.width * to.channels), to.height, to.width, to.channels};
  for (std::int64_t flat = 0; flat < result.size(); ++flat, advance(index, extents)) {
    const std::int64_t top = index[1] * w.stride.height - w.padding.height,
                       left = index[2] * w.stride.width - w.padding.width;
    std::vector<Value> inside;
    for (std::int64_t row = std::max<std::int64_t>(top, 0); row < std::min(top + w.kernel.height, from.height); ++row)
      for (std::int64_t column = std::max<std::int64_t>(left, 0); column < std::min(left + w.kernel.width, from.width);
           ++column)
        inside.push_back(x.at(from.at(index[0], row, column, index[3])));
    result.set(flat, poolWindow(call, arithmetic, inside));
  }
  return result;
}

/// For u = max((i + 1/2) H / H' - 1/2, 0): the index below, the next one, and the fraction of u, exactly.
struct Place {
  Place(std::int64_t i, std::int64_t before, std::int64_t after) {
    const std::int64_t twice = std::max<std::int64_t>((2 * i + 1) * before - after, 0); // u = twice / (2 after)
    low = twice / (2 * after);
    next = std::min(low + 1, before - 1);
    part = static_cast<double>(twice % (2 * after)) / static_cast<double>(2 * after);
  }
  std::int64_t low, next;
  double part;
};

/// Returns the mean of four neighbours. A weight, even one of 0, may be off by some roundings of 1: a finite neighbour
/// then contributes, and a non-finite one may or may not. Neighbours of equal weight may be added before they are
/// weighted, which overflows near the largest number.
Value meanOfFour(const Arithmetic &arithmetic, const Value (&x)[4], const double (&weights)[4]) {
  Sum sum(arithmetic);
  double size = 0;
  bool isOpen = false;
  for (int k = 0; k < 4; ++k) {
    isOpen |= !std::isfinite(x[k].value) && weights[k] < 8 * arithmetic.unit;
    sum.addProduct(x[k], exact(weights[k]));
    size += std::abs(x[k].value) + x[k].error;
  }
  const Value mean = sum.result();
  if (isOpen || (std::isfinite(size) && !arithmetic.holds(size)))
    return undetermined(mean.value);
  return mean.isDetermined() && std::isfinite(mean.value)
             ? arithmetic.settle(mean.value, mean.error + 8 * arithmetic.unit * size)
             : mean;
}

Tensor evaluateResize(const OpCall &call) {
  const Tensor &x = call[0];
  TensorShape shape = x.shape;
  call.require(call.shape.size() == shape.size(), "wrong rank of the result; expected the same");
  for (std::size_t axis = shape.size() - 3; axis < shape.size() - 1; ++axis)
    shape[axis] = call.shape[axis];
  Tensor result = call.result(shape, x.element);
  const Image from(x.shape), to(shape);
  const Arithmetic arithmetic(x.element);
  TensorShape index(4, 0);
  const TensorShape extents{result.size() / (to.height * to.width * to.channels), to.height, to.width, to.channels};
  for (std::int64_t flat = 0; flat < result.size(); ++flat, advance(index, extents)) {
    const Place row(index[1], from.height, to.height), column(index[2], from.width, to.width);
    auto pixel = [&](std::int64_t r, std::int64_t c) { return x.at(from.at(index[0], r, c, index[3])); };
    const Value four[] = {pixel(row.low, column.low), pixel(row.low, column.next), pixel(row.next, column.low),
                          pixel(row.next, column.next)};
    const double weights[] = {(1 - row.part) * (1 - column.part), (1 - row.part) * column.part,
                              row.part * (1 - column.part), row.part * column.part};
    result.set(flat, meanOfFour(arithmetic, four, weights));
  }
  return result;
}

} // namespace

Tensor evaluateImage(const OpCall &call) {
  call.requireOperands(1, 1);
  call.requireFloating();
  call.requireRank(0, 3);
  return call.node.op == Op::resize_bilinear ? evaluateResize(call) : evaluatePool(call);
}

} // namespace kiln::interpreter
