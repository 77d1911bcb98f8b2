// SPDX-License-Identifier: Apache-2.0
//
// Normalisations: softmax and log_softmax along an axis, layer_norm and rms_norm over the last one. Running sums are in
// Reduction.cpp.
#include <algorithm>
#include <cmath>

#include "compiler/interpreter/OpCall.h"
#include "compiler/interpreter/SoftmaxRow.h"

namespace kiln::interpreter {
namespace {

Tensor evaluateSoftmax(const OpCall &call) {
  call.requireOperands(1, 1);
  call.requireFloating();
  const Tensor &x = call[0];
  const Lines lines(x.shape, call.axis());
  Tensor result = call.result(x.shape, x.element);
  const Arithmetic arithmetic(x.element);
  for (std::int64_t o = 0; o < lines.outer; ++o)
    for (std::int64_t i = 0; i < lines.inner; ++i) {
      std::vector<Value> line;
      for (std::int64_t k = 0; k < lines.extent; ++k)
        line.push_back(x.at(lines.at(o, k, i)));
      const SoftmaxRow row(arithmetic, std::move(line));
      for (std::int64_t k = 0; k < lines.extent; ++k)
        result.set(lines.at(o, k, i), call.node.op == Op::softmax ? row.weight(k) : row.logarithm(k));
    }
  return result;
}

/// The moments of a row: the value to subtract, and 1 / sqrt(spread + epsilon).
struct Moments {
  Value center, inverseRoot;
};

/// For sums of squares, which are not negative: maps [spread - error, spread + error] through 1 / sqrt(. + epsilon).
Value inverseRoot(const Arithmetic &arithmetic, double spread, double error, double epsilon) {
  const double result = 1 / std::sqrt(spread + epsilon);
  const double high = 1 / std::sqrt(std::max(spread - error, 0.0) + epsilon),
               low = 1 / std::sqrt(spread + error + epsilon);
  return arithmetic.settle(result, std::max(high - result, result - low) + 6 * arithmetic.unit * high);
}

/// The error of the mean shifts all differences equally. Since sum (x - mean) is 0, such a shift only contributes by
/// its square.
Moments centeredMoments(const Arithmetic &arithmetic, const Value *row, std::int64_t n, double epsilon) {
  const double count = static_cast<double>(n);
  Sum sum(arithmetic);
  for (std::int64_t i = 0; i < n; ++i)
    sum.add(row[i]);
  // An implementation may add the mean of the rounded differences from such a mean.
  const Value mean = arithmetic.div(sum.result(/*more=*/1), exact(count));
  if (mean.isDetermined() &&
      !std::isfinite(mean.value)) // the difference of an infinite element is NaN, and so is the sum of squares
    return {mean, exact(std::numeric_limits<double>::quiet_NaN())};
  double spread = 0, linear = 0, square = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double difference = std::abs(row[i].value - mean.value);
    const double off = row[i].error + arithmetic.unit * (std::abs(row[i].value) + std::abs(mean.value));
    spread += difference * difference / count;
    linear += 2 * difference * off / count;
    square += 2 * off * off / count;
  }
  double error = linear + square + 2 * mean.error * mean.error;
  error += arithmetic.unit * (roundings(n) + 4) * (spread + error) + arithmetic.tiny;
  if (!mean.isDetermined() || !arithmetic.holds((spread + error) * count))
    return {mean, undetermined(1 / std::sqrt(spread + epsilon))};
  return {mean, inverseRoot(arithmetic, spread, error, epsilon)};
}

Moments squareMoments(const Arithmetic &arithmetic, const Value *row, std::int64_t n, double epsilon) {
  Sum squares(arithmetic);
  for (std::int64_t i = 0; i < n; ++i)
    squares.addProduct(row[i], row[i]);
  const Value mean = arithmetic.div(squares.result(), exact(static_cast<double>(n)));
  if (!mean.isDetermined())
    return {exact(0), undetermined(1 / std::sqrt(mean.value + epsilon))};
  if (std::isnan(mean.value))
    return {exact(0), mean};
  if (std::isinf(mean.value)) // 1 / sqrt(infinity) is 0; times infinity it is NaN
    return {exact(0), exact(0)};
  return {exact(0), inverseRoot(arithmetic, mean.value, mean.error + 2 * arithmetic.unit * mean.value, epsilon)};
}

/// x / sqrt(spread + epsilon) is at most the root of n, even where the error bounds of the product are larger.
Value normalized(const Arithmetic &arithmetic, Value x, const Moments &moments, std::int64_t n) {
  if (n == 1 && !std::isfinite(x.value) && !moments.center.isExactly(0)) // the difference from itself may be 0
    return undetermined(x.value);
  const Value result = arithmetic.mul(arithmetic.sub(x, moments.center), moments.inverseRoot);
  const double bound = std::sqrt(static_cast<double>(n)) * 1.001 + std::abs(result.value);
  return result.isDetermined() && std::isfinite(result.value) ? Value{result.value, std::min(result.error, bound)}
                                                              : result;
}

Tensor evaluateRowNorm(const OpCall &call) {
  const bool isCentered = call.node.op == Op::layer_norm;
  call.requireOperands(isCentered ? 3 : 2, isCentered ? 3 : 2);
  call.requireFloating();
  call.requireSameElements();
  call.requireRank(0, 1);
  const Tensor &x = call[0];
  const std::int64_t width = x.shape.back();
  for (std::size_t i = 1; i < call.count(); ++i)
    call.require(call[i].shape == TensorShape{width}, "wrong shape of the weights; expected the last dimension");
  const double epsilon = call.attributes().epsilon;
  call.require(epsilon > 0, "wrong epsilon; expected one above 0");
  Tensor result = call.result(x.shape, x.element);
  const Arithmetic arithmetic(x.element);
  std::vector<Value> row(static_cast<std::size_t>(width));
  for (std::int64_t first = 0; first < x.size(); first += width) {
    for (std::int64_t i = 0; i < width; ++i)
      row[i] = x.at(first + i);
    const Moments moments = isCentered ? centeredMoments(arithmetic, row.data(), width, epsilon)
                                       : squareMoments(arithmetic, row.data(), width, epsilon);
    for (std::int64_t i = 0; i < width; ++i) {
      const Value scaled = arithmetic.mul(normalized(arithmetic, row[i], moments, width), call[1].at(i));
      result.set(first + i, isCentered ? arithmetic.add(scaled, call[2].at(i)) : scaled);
    }
  }
  return result;
}

} // namespace

Tensor evaluateNorm(const OpCall &call) {
  if (call.node.op == Op::cumsum)
    return evaluateCumsum(call);
  return call.node.op == Op::softmax || call.node.op == Op::log_softmax ? evaluateSoftmax(call) : evaluateRowNorm(call);
}

} // namespace kiln::interpreter
