// SPDX-License-Identifier: Apache-2.0
// Parts of images are moved exactly; images of another size are weighted sums in f64, by the formulas of
// torch.nn.functional.interpolate and grid_sample.
#include "ops.h"

#include <algorithm>
#include <cmath>

#include KILN_OPS_HEADER(ops_patches)

#define ENTRY(entry) KILN_OPS_ENTRY(ops_patches, entry)

namespace kiln::testing {
namespace {

auto &session() {
  static Session<KILN_OPS_HANDLE(ops_patches)> only(KILN_OPS_LIBRARY(ops_patches, OPS_PATCHES));
  return only;
}

class Exactly : public Expected {
public:
  explicit Exactly(Array array) : Expected(std::move(array), 0, 0) {}
};

/// The last three axes of x are height, width and channels; others are before them.
Array shuffled(const Array &x, std::int64_t by) {
  Shape shape = x.shape;
  const std::size_t h = shape.size() - 3, w = h + 1, c = h + 2;
  shape[h] *= by, shape[w] *= by, shape[c] /= by * by;
  return generate(shape, [&](Index at) {
    at[c] = (at[c] * by + at[h] % by) * by + at[w] % by;
    at[h] /= by, at[w] /= by;
    return x.at(at);
  });
}
Array unshuffled(const Array &x, std::int64_t by) {
  Shape shape = x.shape;
  const std::size_t h = shape.size() - 3, w = h + 1, c = h + 2;
  shape[h] /= by, shape[w] /= by, shape[c] *= by * by;
  return generate(shape, [&](Index at) {
    at[h] = at[h] * by + at[c] / by % by;
    at[w] = at[w] * by + at[c] % by;
    at[c] /= by * by;
    return x.at(at);
  });
}

TEST(Patches, Shuffles) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 5, 18}), y = random({e.batch, 2 * e.rows, 6, 5}),
          n = randomIntegers({e.rows, 2, 8}, -2000000000, 2000000000);
    Exactly a(shuffled(x, 3)), b(unshuffled(y, 2)), c(x);
    ExpectedIntegers d(shuffled(n, 2)), f(n);
    runAndCompare(session(), ENTRY(shuffles), e.batch, e.rows, Given(x), Given(y), GivenIntegers(n), a, b, d, f, c);
  }
}

struct Windows {
  Sides kernel, stride{1, 1}, padding{0, 0}, dilation{1, 1};
  Sides countOf(std::int64_t height, std::int64_t width) const {
    return {(height + 2 * padding.height - dilation.height * (kernel.height - 1) - 1) / stride.height + 1,
            (width + 2 * padding.width - dilation.width * (kernel.width - 1) - 1) / stride.width + 1};
  }
  /// Calls `each(window, column, index)` for each element of each window of [B, H, W, C] that is in the image.
  void visit(const Shape &image, const std::function<void(std::int64_t, std::int64_t, const Index &)> &each) const {
    const Sides count = countOf(image[1], image[2]);
    for (std::int64_t window = 0; window < count.height * count.width; ++window)
      for (std::int64_t b = 0; b < image[0]; ++b)
        for (std::int64_t c = 0; c < image[3]; ++c)
          for (std::int64_t i = 0; i < kernel.height; ++i)
            for (std::int64_t j = 0; j < kernel.width; ++j) {
              const std::int64_t row = window / count.width * stride.height + i * dilation.height - padding.height,
                                 column = window % count.width * stride.width + j * dilation.width - padding.width;
              if (row >= 0 && row < image[1] && column >= 0 && column < image[2])
                each(window, (c * kernel.height + i) * kernel.width + j, {b, row, column, c});
            }
  }
};

Array unfolded(const Array &x, const Windows &windows) {
  const Sides count = windows.countOf(x.shape[1], x.shape[2]);
  Array y =
      generate({x.shape[0], count.height * count.width, x.shape[3] * windows.kernel.height * windows.kernel.width},
               [](const Index &) { return 0; });
  windows.visit(x.shape, [&](std::int64_t window, std::int64_t column, const Index &at) {
    y.at({at[0], window, column}) = x.at(at);
  });
  return y;
}
Array folded(const Array &x, const Shape &image, const Windows &windows) {
  Array y = generate(image, [](const Index &) { return 0; });
  windows.visit(image, [&](std::int64_t window, std::int64_t column, const Index &at) {
    y.at(at) += x.at({at[0], window, column});
  });
  return y;
}

const Windows pairs{{1, 2}}, around{{3, 3}, {1, 1}, {1, 1}}, apart{{3, 4}, {1, 2}, {2, 3}, {2, 1}};

TEST(Patches, Unfolds) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 5, 4});
    Exactly a(unfolded(x, pairs)), b(unfolded(x, around)), c(unfolded(x, apart));
    runAndCompare(session(), ENTRY(unfolds), e.batch, e.rows, Given(x), a, b, c);
  }
}

TEST(Patches, Folds) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, 4 * e.rows, 8}), y = random({e.batch, 5 * e.rows, 18}),
          z = random({e.batch, 4 * e.rows, 24});
    Expected a(folded(x, {e.batch, e.rows, 5, 4}, pairs), sumTolerance),
        b(folded(y, {e.batch, e.rows, 5, 2}, around), sumTolerance),
        c(folded(z, {e.batch, e.rows, 5, 2}, apart), sumTolerance);
    runAndCompare(session(), ENTRY(folds), e.batch, e.rows, Given(x), Given(y), Given(z), a, b, c);
  }
}

/// Element i is that of floor(i * from / to), computed in f32.
Array nearest(const Array &x, Sides extents) {
  Shape shape = x.shape;
  const std::size_t h = shape.size() - 3, w = h + 1;
  shape[h] = extents.height, shape[w] = extents.width;
  auto place = [](std::int64_t i, std::int64_t from, std::int64_t to) {
    const float scale = static_cast<float>(from) / static_cast<float>(to), at = static_cast<float>(i) * scale;
    return std::min(static_cast<std::int64_t>(std::floor(at)), from - 1);
  };
  return generate(shape, [&](Index at) {
    at[h] = place(at[h], x.shape[h], extents.height);
    at[w] = place(at[w], x.shape[w], extents.width);
    return x.at(at);
  });
}

TEST(Patches, Nearest) {
  for (std::int64_t batch : {1, 2, 3}) {
    Array x = random({batch, 6, 7, 3}), n = randomIntegers({batch, 41, 2, 1}, -2000000000, 2000000000);
    // 41 (1/41) is below 1 in f32, so that element 41 of 1681 is the first one.
    ASSERT_EQ(nearest(n, {1681, 2}).at({0, 41, 0, 0}), n.at({0, 0, 0, 0}));
    Exactly a(nearest(x, {12, 21})), b(nearest(x, {4, 9})), c(nearest(x, {6, 1}));
    ExpectedIntegers d(nearest(n, {1681, 3}));
    runAndCompare(session(), ENTRY(enlarged), batch, batch, Given(x), GivenIntegers(n), a, b, c, d);
  }
}

double cubic(double x, double a) {
  x = std::fabs(x);
  return x <= 1  ? (a + 2) * x * x * x - (a + 3) * x * x + 1
         : x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a
                 : 0;
}
double triangle(double x) { return std::max(0.0, 1 - std::fabs(x)); }

/// Resamples an axis: result i is the sum of x[k] times `weight(i, k)`, also for k outside of x, where x continues with
/// its first and last elements.
Array resampled(const Array &x, int axis, std::int64_t to,
                const std::function<double(std::int64_t, std::int64_t)> &weight) {
  const std::int64_t from = x.shape[static_cast<std::size_t>(axis)];
  Shape shape = x.shape;
  shape[static_cast<std::size_t>(axis)] = to;
  return generate(shape, [&](Index at) {
    const std::int64_t i = at[static_cast<std::size_t>(axis)];
    double sum = 0;
    for (std::int64_t k = -from; k < 2 * from; ++k) {
      at[static_cast<std::size_t>(axis)] = std::clamp<std::int64_t>(k, 0, from - 1);
      sum += x.at(at) * weight(i, k);
    }
    return sum;
  });
}
double scaleOf(const Array &x, std::size_t axis, std::int64_t to) {
  return static_cast<double>(x.shape[axis]) / static_cast<double>(to);
}
Array bicubic(const Array &x, Sides extents) {
  auto along = [](const Array &y, int axis, std::int64_t to) {
    const double scale = scaleOf(y, static_cast<std::size_t>(axis), to);
    return resampled(y, axis, to, [&](std::int64_t i, std::int64_t k) {
      return cubic((static_cast<double>(i) + 0.5) * scale - 0.5 - static_cast<double>(k), -0.75);
    });
  };
  return along(along(x, 1, extents.height), 2, extents.width);
}
/// The weights of the elements in the image are divided by their sum.
Array filtered(const Array &x, Sides extents, const std::function<double(double)> &filter) {
  auto along = [&](const Array &y, int axis, std::int64_t to) {
    const std::int64_t from = y.shape[static_cast<std::size_t>(axis)];
    const double scale = scaleOf(y, static_cast<std::size_t>(axis), to), stretch = std::max(scale, 1.0);
    auto weight = [=](std::int64_t i, std::int64_t k) {
      const double center = scale * (static_cast<double>(i) + 0.5);
      return k < 0 || k >= from ? 0.0 : filter((static_cast<double>(k) + 0.5 - center) / stretch);
    };
    return resampled(y, axis, to, [=](std::int64_t i, std::int64_t k) {
      double sum = 0;
      for (std::int64_t other = 0; other < from; ++other)
        sum += weight(i, other);
      return weight(i, k) / sum;
    });
  };
  return along(along(x, 1, extents.height), 2, extents.width);
}

TEST(Patches, Resizes) {
  auto smooth = [](double x) { return cubic(x, -0.5); };
  for (std::int64_t batch : {1, 2, 3}) {
    Array x = random({batch, 6, 7, 3});
    Expected a(bicubic(x, {13, 5}), sumTolerance), b(bicubic(x, {6, 20}), sumTolerance),
        c(filtered(x, {2, 9}, smooth), sumTolerance), d(filtered(x, {4, 3}, triangle), sumTolerance),
        f(filtered(x, {1, 8}, triangle), sumTolerance);
    runAndCompare(session(), ENTRY(resizes), batch, Given(x), a, b, c, d, f);
  }
}

/// Sums the elements of the image around each point, each with the weight triangle(distance) along both axes.
Array sampled(const Array &x, const Array &grid) {
  const std::int64_t height = x.shape[1], width = x.shape[2];
  auto at = [](double u, std::int64_t extent) { return ((u + 1) * static_cast<double>(extent) - 1) / 2; };
  return generate({grid.shape[0], grid.shape[1], grid.shape[2], x.shape[3]}, [&](const Index &i) {
    const double column = at(grid.at({i[0], i[1], i[2], 0}), width), row = at(grid.at({i[0], i[1], i[2], 1}), height);
    double sum = 0;
    for (std::int64_t h = 0; h < height; ++h)
      for (std::int64_t w = 0; w < width; ++w)
        sum += triangle(row - static_cast<double>(h)) * triangle(column - static_cast<double>(w)) *
               x.at({i[0], h, w, i[3]});
    return sum;
  });
}

TEST(Patches, Samples) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, 6, 7, 3}), grid = random({e.batch, e.rows, 5, 2}, -1.5, 1.5);
    // Corners and centres of pixels, and points far outside of the image.
    const double special[] = {-1, -1, 1, 1, 0, 0, 1e30, -1e30, -3e9f, 0.25};
    std::copy(std::begin(special), std::end(special), grid.values.begin());
    // The position in the image has an error of a few units in the last place of its extent.
    Expected y(sampled(x, grid), 10 * sumTolerance);
    runAndCompare(session(), ENTRY(samples), e.batch, e.rows, Given(x), Given(grid), y);
  }
}

/// The windows of a volume [D, H, W, C].
struct Blocks {
  Shape kernel, stride, padding, dilation{1, 1, 1};
  Shape countOf(const Shape &volume) const {
    Shape count;
    for (std::size_t a = 0; a < 3; ++a)
      count.push_back((volume[a] + 2 * padding[a] - dilation[a] * (kernel[a] - 1) - 1) / stride[a] + 1);
    return count;
  }
  /// Calls `each(place, tap)` for the elements of the window at an index that are in the volume.
  void visit(const Shape &volume, const Index &window,
             const std::function<void(const Index &, const Index &)> &each) const {
    for (std::int64_t tap = 0; tap < kernel[0] * kernel[1] * kernel[2]; ++tap) {
      const Index at = {tap / (kernel[1] * kernel[2]), tap / kernel[2] % kernel[1], tap % kernel[2]};
      Index place(3);
      bool isInside = true;
      for (std::size_t a = 0; a < 3; ++a) {
        place[a] = window[a] * stride[a] + at[a] * dilation[a] - padding[a];
        isInside = isInside && place[a] >= 0 && place[a] < volume[a];
      }
      if (isInside)
        each(place, at);
    }
  }
};

Array conv3d(const Array &x, const Array &weight, const Array &bias, const Blocks &blocks, std::int64_t groups) {
  Shape shape = blocks.countOf(x.shape);
  shape.push_back(weight.shape[0]);
  const std::int64_t channels = weight.shape[1], outputs = weight.shape[0] / groups;
  return generate(shape, [&](const Index &at) {
    double sum = bias.values.empty() ? 0 : bias.at({at[3]});
    blocks.visit(x.shape, at, [&](const Index &place, const Index &tap) {
      for (std::int64_t c = 0; c < channels; ++c)
        sum += x.at({place[0], place[1], place[2], at[3] / outputs * channels + c}) *
               weight.at({at[3], c, tap[0], tap[1], tap[2]});
    });
    return sum;
  });
}

TEST(Patches, Volumes) {
  for (std::int64_t rows : {1, 2, 5, 16, 37}) {
    SCOPED_TRACE(rows);
    Array x = random({2 * rows, 5, 6, 4}), grouped = random({6, 2, 3, 2, 3}), dilated = random({5, 4, 2, 3, 1}),
          bias = random({5});
    Expected a(conv3d(x, grouped, {}, {{3, 2, 3}, {2, 1, 1}, {1, 0, 1}}, 2), sumTolerance),
        b(conv3d(x, dilated, bias, {{2, 3, 1}, {1, 1, 1}, {2, 1, 0}, {2, 1, 1}}, 1), sumTolerance);
    runAndCompare(session(), ENTRY(convolved), rows, Given(x), Given(grouped), Given(dilated), Given(bias), a, b);

    const Blocks pairs{{2, 2, 2}, {2, 2, 2}, {0, 0, 0}}, around{{3, 3, 3}, {1, 2, 1}, {1, 1, 1}};
    auto pooled = [&](const Blocks &blocks, double first, const auto &combine) {
      Shape shape = blocks.countOf(x.shape);
      shape.push_back(4);
      return generate(shape, [&](const Index &at) {
        double result = first;
        blocks.visit(x.shape, at, [&](const Index &place, const Index &) {
          result = combine(result, x.at({place[0], place[1], place[2], at[3]}));
        });
        return result;
      });
    };
    Exactly c(pooled(pairs, -1e30, [](double m, double value) { return std::max(m, value); }));
    Expected d(pooled(around, 0, [](double sum, double value) { return sum + value / 27; }), sumTolerance);
    runAndCompare(session(), ENTRY(pooled), rows, Given(x), c, d);
  }
}

} // namespace
} // namespace kiln::testing
