// SPDX-License-Identifier: Apache-2.0
//
// The reference implementation of each op: naive loops in f64 over whole arrays, written from dsl/SPEC.md and
// textbooks, without code of Kiln.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace kiln::testing {

using Shape = std::vector<std::int64_t>;
using Index = std::vector<std::int64_t>;

/// A dense row-major array.
struct Array {
  Shape shape;
  std::vector<double> values;

  /// Returns the element's position in `values`.
  std::size_t offsetOf(const Index &index) const;
  double &at(const Index &index) { return values[offsetOf(index)]; }
  double at(const Index &index) const { return values[offsetOf(index)]; }
};

std::int64_t countOf(const Shape &shape);

/// Returns the array whose element at each index is the result of `element`.
Array generate(const Shape &shape, const std::function<double(const Index &)> &element);
/// Returns the same elements with another shape.
Array reshaped(Array array, Shape shape);

Array map(const Array &x, const std::function<double(double)> &function);
/// NumPy's broadcasting.
Array broadcast(const Array &a, const Array &b, const std::function<double(double, double)> &function);
Array plus(const Array &a, const Array &b);
Array minus(const Array &a, const Array &b);
Array times(const Array &a, const Array &b);
Array over(const Array &a, const Array &b);
/// Returns NaN if an operand is NaN; so do maximum, argmax and maxPool2d.
Array larger(const Array &a, const Array &b);
Array number(double value);

/// Reduces each line along the axis to a number, or maps it to another line. Here and below a negative axis counts from
/// the last.
Array reduce(const Array &x, int axis, const std::function<double(const std::vector<double> &)> &function);
Array alongAxis(const Array &x, int axis, const std::function<void(std::vector<double> &)> &function);

Array softmax(const Array &x, int axis);
Array logSoftmax(const Array &x, int axis);
Array mean(const Array &x, int axis);
Array maximum(const Array &x, int axis);
Array sum(const Array &x, int axis);
Array argmax(const Array &x, int axis);
Array layerNorm(const Array &x, const Array &weight, const Array &bias, double epsilon);
Array rmsNorm(const Array &x, const Array &weight, double epsilon);

double sigmoid(double x);
double silu(double x);
double gelu(double x);
double geluTanh(double x);

Array transpose(const Array &x, const std::vector<int> &permutation);
Array concat(const std::vector<Array> &parts, int axis);
Array slice(const Array &x, int axis, std::int64_t start, std::int64_t extent);
Array gather(const Array &table, const Array &indices, int axis);
Array sinusoidal(std::int64_t rows, std::int64_t width, double base = 10000);

/// a [..., M, K] b [..., K, N], with broadcast leading dimensions.
Array matmul(const Array &a, const Array &b);
/// The weight is [out, in], or [in, out] if `swapped`; without a bias if that has no elements.
Array linear(const Array &x, const Array &weight, const Array &bias = {}, bool swapped = false);

/// A pair of height and width.
struct Sides {
  std::int64_t height, width;
};
/// x [..., H, W, C], weight [O, C / groups, kh, kw]; without a bias if that has no elements.
Array conv2d(const Array &x, const Array &weight, const Array &bias, Sides stride, Sides padding,
             Sides dilation = {1, 1}, std::int64_t groups = 1);
Array maxPool2d(const Array &x, Sides kernel, Sides stride, Sides padding);
/// The padding counts as zeros.
Array avgPool2d(const Array &x, Sides kernel, Sides stride, Sides padding);

Array resizeBilinear(const Array &x, Sides extents);

struct AttentionOptions {
  double scale = 0; // 0 means 1 / sqrt(width of a head)
  bool causal = false;
  std::int64_t window = 0;        // with causal: a query attends to so many keys; 0 means all
  double softcap = 0;             // limits the scaled scores to c tanh(scores / c); 0 means no limit
  const Array *mask = nullptr;    // broadcasts to [..., queries, keys], or per head to [..., heads, queries, keys]
  const Array *lengths = nullptr; // [...]
  const Array *sinks = nullptr;   // [heads], of attention only: a further score, whose value is 0
  int keyHeads = 0;               // 0 means the number of heads
};
/// Returns the scores of every head before the softmax, [..., heads, queries, keys]: -infinity for masked keys.
Array attentionScores(const Array &q, const Array &k, int heads, const AttentionOptions &options = {});
/// The softmax of the scores; 0 in rows without a key.
Array attentionWeights(const Array &scores);
Array attention(const Array &q, const Array &k, const Array &v, int heads, const AttentionOptions &options = {});

} // namespace kiln::testing
