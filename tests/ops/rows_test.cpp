// SPDX-License-Identifier: Apache-2.0
#include "ops.h"

#include KILN_OPS_HEADER(ops_rows)

#define ENTRY(entry) KILN_OPS_ENTRY(ops_rows, entry)

namespace kiln::testing {
namespace {

auto library() { return KILN_OPS_LIBRARY(ops_rows, OPS_ROWS); }
auto &session() {
  static Session<KILN_OPS_HANDLE(ops_rows)> only(library());
  return only;
}
Array weight(const std::string &name) { return weightOf(library().weights, name); }

TEST(Rows, Softmax) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 13}, -8, 8);
    Expected a(softmax(x, 0), sumTolerance, 0), b(softmax(x, 1), sumTolerance, 0), c(softmax(x, 2), sumTolerance, 0);
    runAndCompare(session(), ENTRY(softmax), e.batch, e.rows, Given(x), a, b, c);
  }
}

TEST(Rows, LogSoftmax) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 13}, -8, 8);
    Expected a(logSoftmax(x, 0), sumTolerance, 1), b(logSoftmax(x, 1), sumTolerance, 1),
        c(logSoftmax(x, 2), sumTolerance, 1);
    runAndCompare(session(), ENTRY(log_softmax), e.batch, e.rows, Given(x), a, b, c);
  }
}

// The exponentials of the scores themselves would be infinite, or 0 for a whole line.
TEST(Rows, SoftmaxOfLargeScores) {
  for (double offset : {-1000.0, 1000.0, 3e4}) {
    SCOPED_TRACE(offset);
    Array x = randomIntegers({2, 5, 13}, -6, 7); // small integers, which are exact next to the offset
    for (double &value : x.values)
      value += offset;
    Expected a(softmax(x, 0), sumTolerance, 0), b(softmax(x, 1), sumTolerance, 0), c(softmax(x, 2), sumTolerance, 0);
    runAndCompare(session(), ENTRY(softmax), std::int64_t{2}, std::int64_t{5}, Given(x), a, b, c);
    Expected d(logSoftmax(x, 0), sumTolerance, 1), f(logSoftmax(x, 1), sumTolerance, 1),
        g(logSoftmax(x, 2), sumTolerance, 1);
    runAndCompare(session(), ENTRY(log_softmax), std::int64_t{2}, std::int64_t{5}, Given(x), d, f, g);
  }
}

TEST(Rows, Mean) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 13});
    Expected a(mean(x, 0), sumTolerance), b(mean(x, 1), sumTolerance, 1), c(mean(x, 2), sumTolerance, 1);
    runAndCompare(session(), ENTRY(mean), e.batch, e.rows, Given(x), a, b, c);
  }
}

// All values are negative, so that a maximum that began at 0 would be wrong.
TEST(Rows, Max) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 13}, -9, -1);
    Expected a(maximum(x, 0), 0, 0), b(maximum(x, 1), 0, 0), c(maximum(x, 2), 0, 0);
    runAndCompare(session(), ENTRY(max), e.batch, e.rows, Given(x), a, b, c);
  }
}

TEST(Rows, Sum) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 13});
    Expected a(sum(x, 0), sumTolerance, 4), b(sum(x, 1), sumTolerance, 4), c(sum(x, 2), sumTolerance, 4);
    runAndCompare(session(), ENTRY(sum), e.batch, e.rows, Given(x), a, b, c);
  }
}

// Few different values, so that most lines have several maxima: the first one is the result.
TEST(Rows, Argmax) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = randomIntegers({e.batch, e.rows, 13}, -5, -1);
    ExpectedIntegers a(argmax(x, 0)), b(argmax(x, 1)), c(argmax(x, 2));
    runAndCompare(session(), ENTRY(argmax), e.batch, e.rows, Given(x), a, b, c);
  }
}

// NaN is the largest, and lines of -infinity only have the first element as their argmax.
TEST(Rows, MaximaOfExtremes) {
  for (double usual : {double(NAN), -double(INFINITY), 0.0})
    for (const Extents &e : allExtents()) {
      KILN_TRACE_EXTENTS(e);
      Array x = randomExtremes({e.batch, e.rows, 13}, usual);
      Expected a(maximum(x, 0), 0, 0), b(maximum(x, 1), 0, 0), c(maximum(x, 2), 0, 0);
      runAndCompare(session(), ENTRY(max), e.batch, e.rows, Given(x), a, b, c);
      ExpectedIntegers f(argmax(x, 0)), g(argmax(x, 1)), h(argmax(x, 2));
      runAndCompare(session(), ENTRY(argmax), e.batch, e.rows, Given(x), f, g, h);
    }
}

TEST(Rows, SoftmaxOfNaN) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 13}, -8, 8);
    x.values[x.values.size() / 2] = NAN;
    Expected a(softmax(x, 0), sumTolerance, 0), b(softmax(x, 1), sumTolerance, 0), c(softmax(x, 2), sumTolerance, 0);
    runAndCompare(session(), ENTRY(softmax), e.batch, e.rows, Given(x), a, b, c);
    Expected d(logSoftmax(x, 0), sumTolerance, 1), f(logSoftmax(x, 1), sumTolerance, 1),
        g(logSoftmax(x, 2), sumTolerance, 1);
    runAndCompare(session(), ENTRY(log_softmax), e.batch, e.rows, Given(x), d, f, g);
  }
}

TEST(Rows, GumbelMax) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows, 13}), uniform = random({e.rows, 13}, 0.001, 0.999), z = random({13, 5});
    const Array drawn = argmax(minus(x, map(uniform, [](double u) { return std::log(-std::log(u)); })), 1);
    ExpectedIntegers index(drawn);
    Expected row(gather(z, drawn, 0), 0, 0);
    runAndCompare(session(), ENTRY(gumbel), e.rows, Given(x), Given(uniform), Given(z), index, row);
  }
}

TEST(Rows, Vector) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.others}, -3, 3);
    Expected average(mean(x, 0), sumTolerance, 1), most(maximum(x, 0), 0, 0), total(sum(x, 0), sumTolerance, 10),
        weights(softmax(x, 0), sumTolerance, 0);
    ExpectedIntegers place(argmax(x, 0));
    runAndCompare(session(), ENTRY(vector), e.others, Given(x), average, most, total, place, weights);
  }
}

TEST(Rows, Integers) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = randomIntegers({e.rows, 13}, -1000000, -3);
    ExpectedIntegers a(sum(x, 0)), b(sum(x, 1)), c(maximum(x, 0)), d(maximum(x, 1)), f(argmax(x, 1));
    runAndCompare(session(), ENTRY(integers), e.rows, GivenIntegers(x), a, b, c, d, f);
  }
}

TEST(Rows, LayerNorm) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array a = random({e.batch, e.rows, 37}, -3, 3), b = random({e.rows, 200}, 0, 5), c = random({e.rows, 1});
    Expected x(layerNorm(a, weight("norm37.weight"), weight("norm37.bias"), 1e-5), sumTolerance, 2),
        y(layerNorm(b, weight("norm200.weight"), weight("norm200.bias"), 1e-3), sumTolerance, 2),
        z(layerNorm(c, weight("norm1.weight"), weight("norm1.bias"), 1e-5), sumTolerance, 2);
    runAndCompare(session(), ENTRY(layer_norm), e.batch, e.rows, Given(a), Given(b), Given(c), x, y, z);
  }
}

// The mean is far larger than the deviation: a variance by E[x^2] - E[x]^2 would be noise. And a constant row.
TEST(Rows, LayerNormFarFromZero) {
  Array a = random({1, 4, 37}, 499, 501), b = random({4, 200}, -1001, -999), c = random({4, 1});
  for (int i = 0; i < 37; ++i)
    a.values[i] = 7.25;
  Expected x(layerNorm(a, weight("norm37.weight"), weight("norm37.bias"), 1e-5), 3e-4, 1),
      y(layerNorm(b, weight("norm200.weight"), weight("norm200.bias"), 1e-3), 3e-4, 1),
      z(layerNorm(c, weight("norm1.weight"), weight("norm1.bias"), 1e-5), sumTolerance, 2);
  runAndCompare(session(), ENTRY(layer_norm), std::int64_t{1}, std::int64_t{4}, Given(a), Given(b), Given(c), x, y, z);
}

TEST(Rows, RmsNorm) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array a = random({e.batch, e.rows, 37}, -3, 3), b = random({e.rows, 130}, 0, 5);
    Expected x(rmsNorm(a, weight("rms37.weight"), 1e-6), sumTolerance, 1),
        y(rmsNorm(b, weight("rms130.weight"), 1e-2), sumTolerance, 1);
    runAndCompare(session(), ENTRY(rms_norm), e.batch, e.rows, Given(a), Given(b), x, y);
  }
}

/// BatchNorm1d outside of training: the running mean and variance, of each channel.
Array batchNorm(const Array &x, const std::string &layer, double epsilon) {
  auto deviation = [=](double variance) { return std::sqrt(variance + epsilon); };
  const Array away = minus(x, weight(layer + ".running_mean"));
  return plus(times(over(away, map(weight(layer + ".running_var"), deviation)), weight(layer + ".weight")),
              weight(layer + ".bias"));
}

TEST(Rows, BatchNorm) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array a = random({e.batch, e.rows, 37}), b = random({e.rows, 37}), c = random({e.rows, 1});
    Expected x(batchNorm(a, "batch37", 1e-5), pointwiseTolerance, 1),
        y(batchNorm(b, "batch37", 1e-5), pointwiseTolerance, 1), z(batchNorm(c, "batch1", 1e-2), pointwiseTolerance, 1);
    runAndCompare(session(), ENTRY(batch_norm), e.batch, e.rows, Given(a), Given(b), Given(c), x, y, z);
  }
}

TEST(Rows, Fused) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array a = random({e.rows, 37}), b = random({e.rows, 37});
    Array x = plus(a, b);
    Expected both(x, pointwiseTolerance, 1),
        normal(times(layerNorm(x, weight("norm37.weight"), weight("norm37.bias"), 1e-5), number(2)), sumTolerance, 4);
    runAndCompare(session(), ENTRY(fused), e.rows, Given(a), Given(b), both, normal);
  }
}

} // namespace
} // namespace kiln::testing
