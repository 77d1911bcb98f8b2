// SPDX-License-Identifier: Apache-2.0
#include "ops.h"

#include KILN_OPS_HEADER(ops_image)

#define ENTRY(entry) KILN_OPS_ENTRY(ops_image, entry)

namespace kiln::testing {
namespace {

auto library() { return KILN_OPS_LIBRARY(ops_image, OPS_IMAGE); }
auto &session() {
  static Session<KILN_OPS_HANDLE(ops_image)> only(library());
  return only;
}
Array weight(const std::string &name) { return weightOf(library().weights, name); }

Array layer(const std::string &name, const Array &x, Sides stride = {1, 1}, Sides padding = {0, 0},
            Sides dilation = {1, 1}, std::int64_t groups = 1, bool hasBias = true) {
  return conv2d(x, weight(name + ".weight"), hasBias ? weight(name + ".bias") : Array(), stride, padding, dilation,
                groups);
}

Array norm(const std::string &name, const Array &x, double epsilon) {
  Array scale = over(weight(name + ".weight"),
                     map(weight(name + ".running_var"), [=](double v) { return std::sqrt(v + epsilon); }));
  return plus(times(minus(x, weight(name + ".running_mean")), scale), weight(name + ".bias"));
}

TEST(Image, Convolution) {
  for (std::int64_t batch : {1, 2, 3}) {
    Array x = random({batch, 9, 11, 6});
    Expected a(layer("same", x, {1, 1}, {1, 1}), sumTolerance),
        b(layer("strided", x, {2, 3}, {1, 0}, {1, 1}, 1, false), sumTolerance),
        c(layer("dilated", x, {2, 2}, {3, 2}, {3, 2}), sumTolerance), d(layer("pointwise", x), sumTolerance),
        e(layer("sparse", x, {2, 2}), sumTolerance), f(layer("patches", x, {3, 4}), sumTolerance);
    runAndCompare(session(), ENTRY(convolution), batch, Given(x), a, b, c, d, e, f);
  }
}

TEST(Image, Groups) {
  for (std::int64_t batch : {1, 2, 3}) {
    Array x = random({batch, 9, 11, 6});
    Expected a(layer("grouped", x, {2, 1}, {1, 1}, {1, 1}, 3), sumTolerance),
        b(layer("depthwise", x, {1, 1}, {2, 1}, {1, 1}, 6), sumTolerance),
        c(layer("multiplied", x, {1, 1}, {0, 0}, {1, 1}, 6, false), sumTolerance);
    runAndCompare(session(), ENTRY(groups), batch, Given(x), a, b, c);
  }
}

TEST(Image, RunTimeHeight) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows + 4, 7, 6}), y = random({e.batch, 2, 2 * e.rows, 5, 6});
    Expected a(layer("same", x, {1, 1}, {1, 1}), sumTolerance), b(maxPool2d(x, {3, 3}, {1, 1}, {1, 1}), 0, 0),
        c(avgPool2d(y, {2, 2}, {2, 2}, {0, 0}), sumTolerance);
    runAndCompare(session(), ENTRY(run_time), e.batch, e.rows, Given(x), Given(y), a, b, c);
  }
}

TEST(Image, ResidualBlock) {
  for (std::int64_t batch : {1, 3}) {
    Array x = random({batch, 9, 11, 6});
    Array sum =
        plus(norm("norm", layer("square", x, {1, 1}, {1, 1}, {1, 1}, 1, false), 1e-3), norm("shortcut", x, 1e-5));
    Expected y(larger(sum, number(0)), 2 * sumTolerance);
    runAndCompare(session(), ENTRY(block), batch, Given(x), y);
  }
}

TEST(Image, RunningAverage) {
  Array x = random({2, 9, 11, 6});
  Expected y(minus(x, weight("kept")), pointwiseTolerance);
  runAndCompare(session(), ENTRY(kept), 2, Given(x), y);
}

// Values are negative, so that a maximum that included the padding's zeros would be wrong.
TEST(Image, Pools) {
  for (std::int64_t batch : {1, 2, 3}) {
    Array x = random({batch, 9, 11, 6}, -9, -1);
    Expected a(maxPool2d(x, {2, 2}, {2, 2}, {0, 0}), 0, 0), b(maxPool2d(x, {3, 2}, {2, 3}, {1, 0}), 0, 0);
    runAndCompare(session(), ENTRY(max_pools), batch, Given(x), a, b);
    Expected c(avgPool2d(x, {3, 2}, {2, 3}, {1, 0}), sumTolerance),
        d(avgPool2d(x, {9, 11}, {9, 11}, {0, 0}), sumTolerance),
        e(avgPool2d(x, {3, 11}, {3, 11}, {0, 0}), sumTolerance);
    runAndCompare(session(), ENTRY(avg_pools), batch, Given(x), c, d, e);
  }
}

TEST(Image, PoolsOfExtremes) {
  for (double usual : {double(NAN), -double(INFINITY), 0.0}) {
    Array x = randomExtremes({3, 9, 11, 6}, usual);
    Expected a(maxPool2d(x, {2, 2}, {2, 2}, {0, 0}), 0, 0), b(maxPool2d(x, {3, 2}, {2, 3}, {1, 0}), 0, 0);
    runAndCompare(session(), ENTRY(max_pools), std::int64_t{3}, Given(x), a, b);
  }
}

TEST(Image, Resize) {
  for (std::int64_t batch : {1, 3}) {
    Array x = random({batch, 9, 11, 6});
    Expected a(resizeBilinear(x, {18, 22}), sumTolerance), b(resizeBilinear(x, {4, 29}), sumTolerance),
        c(resizeBilinear(x, {1, 1}), sumTolerance), d(x, pointwiseTolerance);
    runAndCompare(session(), ENTRY(resize), batch, Given(x), a, b, c, d);
  }
}

} // namespace
} // namespace kiln::testing
