// SPDX-License-Identifier: Apache-2.0
#include "ops.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include KILN_OPS_HEADER(ops_derived)

#define ENTRY(entry) KILN_OPS_ENTRY(ops_derived, entry)

namespace kiln::testing {
namespace {

auto &session() {
  static Session<KILN_OPS_HANDLE(ops_derived)> only(KILN_OPS_LIBRARY(ops_derived, OPS_DERIVED));
  return only;
}

constexpr double tolerance = pointwiseTolerance;

double softplus(double x) { return std::log1p(std::exp(-std::fabs(x))) + (x > 0 ? x : 0); }
double clamped(double x, double least, double most) { return x < least ? least : x > most ? most : x; }

Array smaller(const Array &a, const Array &b) {
  return map(larger(map(a, [](double x) { return -x; }), map(b, [](double x) { return -x; })),
             [](double x) { return -x; });
}

void checkFunctions(const Array &x, const Array &y) {
  Expected a(map(x, softplus), tolerance, 1e-30), b(map(x, [](double v) { return std::fabs(v); }), 0, 0),
      c(map(x, [](double v) { return std::floor(v); }), 0, 0),
      d(map(x, [](double v) { return std::nearbyint(v); }), 0, 0), e(smaller(x, y), 0, 0),
      f(smaller(x, number(0.125)), 0, 0), g(map(x, [](double v) { return clamped(v, -1.5, 0.75); }), 0, 0),
      h(map(x, [](double v) { return v < 0 ? 0.2f * v : v; }), tolerance, 1e-30),
      i(map(x, [](double v) { return v < 0 ? 1.5 * std::expm1(v) : v; }), 2 * tolerance, 1e-30);
  runAndCompare(session(), ENTRY(functions), x.shape[0], Given(x), Given(y), a, b, c, d, e, f, g, h, i);
}

TEST(Derived, Functions) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    checkFunctions(random({e.rows, 19}, -10, 10), random({e.rows, 19}, -10, 10));
  }
}

// Ties between integers, numbers that are absorbed next to 1, and NaN.
TEST(Derived, FunctionsAtTheEdges) {
  Array x{{1, 19},
          {0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 1e-8f, -1e-8f, 1e-4f, -1e-4f, -20, -40, 20, 1e9f, -1e9f, 3, -3, NAN, 0}};
  checkFunctions(x, random({1, 19}));
  checkFunctions(randomExtremes({5, 19}, -0.25), randomExtremes({5, 19}, 0.25));
}

TEST(Derived, Powers) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows, 19}, 0.2, 3), positive = random({e.rows, 19}, 0.01, 20),
          power = random({e.rows, 19}, -3, 3);
    for (std::size_t i = 0; i < x.values.size(); i += 2)
      x.values[i] = -x.values[i];
    auto to = [](const Array &base, double exponent) {
      return map(base, [=](double v) { return std::pow(v, exponent); });
    };
    // exp(y log x): errors of the logarithm grow with y log x.
    Expected a(to(positive, -0.5), tolerance, 0), b(to(x, 3), tolerance, 0), c(to(x, -2), tolerance, 0),
        d(to(x, 6), tolerance, 0), f(to(x, 0), 0, 0), g(to(positive, 0.5), tolerance, 0),
        h(to(positive, -1.7), 5e-6, 0),
        i(broadcast(positive, power, [](double v, double p) { return std::pow(v, p); }), 1e-5, 0);
    runAndCompare(session(), ENTRY(powers), e.rows, Given(x), Given(positive), Given(power), a, b, c, d, f, g, h, i);
  }
}

TEST(Derived, Comparisons) {
  auto as = [](bool (*holds)(double, double)) { return [=](double x, double y) { return double(holds(x, y)); }; };
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array a = randomIntegers({e.rows, 19}, -2, 3), b = randomIntegers({e.rows, 19}, -2, 3);
    Array i = randomIntegers({e.rows, 19}, -5, 6), j = randomIntegers({e.rows, 19}, -5, 6);
    a.values[0] = NAN;
    a.values[1] = b.values[1] = INFINITY;
    a.values[2] = -0.0, b.values[2] = 0;
    Expected notAbove(broadcast(a, b, as([](double x, double y) { return x <= y; })), 0, 0),
        chosen(broadcast(a, b, [](double x, double y) { return x < y && x > 0 ? x : y; }), 0, 0),
        notBelow(broadcast(a, b, as([](double x, double y) { return !(x < y); })), 0, 0);
    ExpectedIntegers same(broadcast(a, b, as([](double x, double y) { return x == y; }))),
        sameWhole(broadcast(i, j, as([](double x, double y) { return x == y; }))),
        either(broadcast(i, j, as([](double x, double y) { return x <= y || x == 3; }))),
        one(broadcast(i, j, as([](double x, double y) { return (x >= 0) != (x != y); })));
    runAndCompare(session(), ENTRY(comparisons), e.rows, Given(a), Given(b), GivenIntegers(i), GivenIntegers(j),
                  notAbove, same, chosen, sameWhole, either, one, notBelow);
  }
}

TEST(Derived, Integers) {
  auto rest = [](double x, double y) { return y == 0 ? x : std::fmod(x, y); };
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array a = randomIntegers({e.rows, 19}, -1000000, 1000000), b = randomIntegers({e.rows, 19}, -20, 20);
    a.values[0] = -2147483648.0, b.values[0] = -1;
    a.values[1] = 2147483647.0, b.values[1] = 0;
    ExpectedIntegers left(broadcast(a, b, rest)), ofSeven(broadcast(a, number(7), rest)),
        size(map(a, [](double x) { return x == -2147483648.0 ? x : std::fabs(x); })), least(smaller(a, b)),
        within(map(a, [](double x) { return clamped(x, -5, 9); }));
    Expected floats(map(a, [](double x) { return static_cast<float>(x); }), 0, 0);
    runAndCompare(session(), ENTRY(integers), e.rows, GivenIntegers(a), GivenIntegers(b), left, ofSeven, size, least,
                  within, floats);
  }
}

TEST(Derived, Casts) {
  auto whole = [](double x) { return std::trunc(clamped(x, -2147483648.0, 2147483520.0)); };
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows, 19}, -100, 100);
    const double edges[] = {0.999999f,     -0.999999f, 2147483520.0, 2147483648.0, 3e38f,
                            -2147483648.0, -3e38f,     INFINITY,     -INFINITY,    -0.0};
    std::copy(std::begin(edges), std::end(edges), x.values.begin());
    ExpectedIntegers cast(map(x, whole));
    runAndCompare(session(), ENTRY(casts), e.rows, Given(x), cast);
  }
}

TEST(Derived, Rows) {
  auto normal = [](std::vector<double> &line) {
    double sum = 0;
    for (double value : line)
      sum += value * value;
    for (double &value : line)
      value /= std::max(std::sqrt(sum), 1e-12);
  };
  auto sums = [](std::vector<double> &line) { std::partial_sum(line.begin(), line.end(), line.begin()); };
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 19}), n = randomIntegers({e.rows, 3}, -100, 100);
    std::fill_n(x.values.begin(), 19, 0.0); // a line of zeros stays zero
    Expected a(alongAxis(x, -1, normal), sumTolerance, 0), b(alongAxis(x, 1, normal), sumTolerance, 0),
        c(alongAxis(x, -1, sums), sumTolerance, 4), d(alongAxis(x, 1, sums), sumTolerance, 4),
        f(alongAxis(map(x, [](double v) { return std::tanh(v); }), 0, sums), sumTolerance, 4);
    ExpectedIntegers whole(alongAxis(n, 0, sums));
    runAndCompare(session(), ENTRY(rows), e.rows, e.batch, Given(x), GivenIntegers(n), a, b, c, d, whole, f);
  }
}

/// Returns the positions of a line's elements in descending order, NaN first; the first of equal elements comes first.
std::vector<std::size_t> order(const std::vector<double> &line) {
  std::vector<std::size_t> places(line.size());
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(),
                   [&](auto a, auto b) { return std::isnan(line[a]) ? !std::isnan(line[b]) : line[a] > line[b]; });
  return places;
}
Array largest(const Array &x, int axis, std::int64_t count, bool asPlaces) {
  Array sorted = alongAxis(x, axis, [&](std::vector<double> &line) {
    const std::vector<double> before = line;
    const auto places = order(before);
    for (std::size_t i = 0; i < line.size(); ++i)
      line[i] = asPlaces ? static_cast<double>(places[i]) : before[places[i]];
  });
  return slice(sorted, axis, 0, count);
}

TEST(Derived, Largest) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = randomIntegers({e.batch, e.rows, 19}, -9, 10), n = randomIntegers({e.batch, 19, e.rows}, -9, 10);
    // Lines whose largest elements include the lowest value, and one with NaN.
    for (std::size_t i = 0; i < 19; ++i) {
      x.values[i] = i == 7 ? -3.4028234663852886e38 : i == 9 ? 2.0 : -INFINITY;
      if (i > 1)
        n.values[i * static_cast<std::size_t>(e.rows)] = -2147483648.0;
    }
    if (x.values.size() > 19) {
      x.values[19 + 3] = x.values[19 + 11] = NAN;
      x.values[19 + 2] = INFINITY;
    }
    Expected values(largest(x, 2, 5, false), 0, 0), first(largest(x, 1, 1, false), 0, 0);
    ExpectedIntegers places(largest(x, 2, 5, true)), firstPlace(largest(x, 1, 1, true)), whole(largest(n, 1, 3, false)),
        wholePlaces(largest(n, 1, 3, true));
    runAndCompare(session(), ENTRY(largest), e.rows, e.batch, Given(x), GivenIntegers(n), values, places, first,
                  firstPlace, whole, wholePlaces);
  }
}

TEST(Derived, Triangles) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 19}), n = randomIntegers({e.rows, e.rows}, 1, 9);
    x.values[0] = NAN; // removed elements must not affect the result
    auto where = [](const Array &all, const std::function<bool(std::int64_t, std::int64_t)> &keeps) {
      return generate(all.shape,
                      [&](const Index &at) { return keeps(at[at.size() - 2], at[at.size() - 1]) ? all.at(at) : 0; });
    };
    Expected a(where(x, [](auto i, auto j) { return j <= i; }), 0, 0),
        b(where(x, [](auto i, auto j) { return j >= i; }), 0, 0),
        c(where(x, [](auto i, auto j) { return j <= i - 2; }), 0, 0),
        d(where(x, [](auto i, auto j) { return j >= i + 3; }), 0, 0);
    ExpectedIntegers whole(where(n, [](auto i, auto j) { return j <= i + 1; }));
    runAndCompare(session(), ENTRY(triangles), e.rows, e.batch, Given(x), GivenIntegers(n), a, b, c, d, whole);
  }
}

TEST(Derived, Moves) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows, 19}), n = randomIntegers({e.rows, 19}, -9, 9);
    auto filled = [](Shape shape, double value) { return generate(shape, [=](const Index &) { return value; }); };
    Expected a(concat({filled({2, 19}, 0), x, filled({1, 19}, 0)}, 0), 0, 0),
        b(concat({x, filled({e.rows, 3}, 1.5)}, 1), 0, 0),
        c(generate(x.shape, [&](const Index &at) { return x.at({at[0], 18 - at[1]}); }), 0, 0), same(x, 0, 0);
    ExpectedIntegers whole(concat({filled({e.rows, 1}, -7), n}, 1));
    runAndCompare(session(), ENTRY(moves), e.rows, Given(x), GivenIntegers(n), a, b, whole, c, same);
  }
}

Array groupNorm(const Array &x, std::int64_t groups, const Array &scale, const Array &shift, double epsilon) {
  const std::int64_t width = x.shape[3] / groups;
  auto overGroups = [&](auto value) {
    return generate({x.shape[0], groups}, [&](const Index &group) {
      double sum = 0;
      for (std::int64_t i = 0; i < x.shape[1]; ++i)
        for (std::int64_t j = 0; j < x.shape[2]; ++j)
          for (std::int64_t c = group[1] * width; c < (group[1] + 1) * width; ++c)
            sum += value(group, x.at({group[0], i, j, c}));
      return sum / static_cast<double>(x.shape[1] * x.shape[2] * width);
    });
  };
  Array mean = overGroups([](const Index &, double v) { return v; });
  Array variance =
      overGroups([&](const Index &group, double v) { return (v - mean.at(group)) * (v - mean.at(group)); });
  return generate(x.shape, [&](const Index &at) {
    const Index group = {at[0], at[3] / width};
    return (x.at(at) - mean.at(group)) / std::sqrt(variance.at(group) + epsilon) * scale.at({at[3]}) +
           shift.at({at[3]});
  });
}

TEST(Derived, Norms) {
  for (std::int64_t rows : {1, 2, 7, 16, 37})
    for (std::int64_t batch : {1, 3}) {
      SCOPED_TRACE(rows);
      Array x = random({batch, rows, 5, 8}), scale = random({8}), shift = random({8});
      Expected a(groupNorm(x, 2, scale, shift, 1e-5), 4 * sumTolerance),
          b(groupNorm(x, 1, scale, shift, 0.1), 4 * sumTolerance),
          c(groupNorm(x, 8, scale, shift, 1e-5), 4 * sumTolerance);
      runAndCompare(session(), ENTRY(norms), rows, batch, Given(x), Given(scale), Given(shift), a, b, c);
    }
}

TEST(Derived, NormsOfLargeImages) {
  for (std::int64_t batch : {1, 2}) {
    Array x = random({batch, 74, 75, 12}), scale = random({12}), shift = random({12});
    for (double &value : x.values)
      value += 3;
    auto expected = [&](std::int64_t groups) {
      return Expected(groupNorm(x, groups, scale, shift, 1e-5), 4 * sumTolerance);
    };
    Expected a = expected(4), b = expected(6), c = expected(1), d = expected(12);
    runAndCompare(session(), ENTRY(groups), batch, Given(x), Given(scale), Given(shift), a, b, c, d);
  }
}

/// Computes y[t, o] = sum of x[t + a dilation - padding, c] weight[o, c, a].
Array signal(const Array &x, const Array &weight, const Array &bias, std::int64_t padding, std::int64_t dilation,
             std::int64_t groups) {
  const std::int64_t outputs = weight.shape[0], channels = weight.shape[1], kernel = weight.shape[2];
  const std::int64_t steps = x.shape[1] + 2 * padding - dilation * (kernel - 1);
  return generate({x.shape[0], steps, outputs}, [&](const Index &at) {
    double sum = bias.values.empty() ? 0 : bias.at({at[2]});
    for (std::int64_t a = 0; a < kernel; ++a)
      for (std::int64_t c = 0; c < channels; ++c) {
        const std::int64_t t = at[1] + a * dilation - padding, from = at[2] / (outputs / groups) * channels + c;
        if (t >= 0 && t < x.shape[1])
          sum += x.at({at[0], t, from}) * weight.at({at[2], c, a});
      }
    return sum;
  });
}

TEST(Derived, Signals) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 6}), weight = random({10, 6, 3}), bias = random({10}), half = random({4, 2, 5});
    Array grouped = concat({half, slice(half, 1, 0, 1)}, 1);
    Expected a(signal(x, weight, bias, 1, 1, 1), sumTolerance), b(signal(x, weight, {}, 4, 2, 1), sumTolerance),
        c(signal(x, grouped, {}, 2, 1, 2), sumTolerance);
    runAndCompare(session(), ENTRY(signals), e.rows, e.batch, Given(x), Given(weight), Given(bias), Given(half), a, b,
                  c);
  }
}

/// Scatters each element of x over the window that begins there.
Array scattered(const Array &x, const Array &weight, const Array &bias, Sides stride, Sides padding, Sides more,
                Sides dilation, std::int64_t groups) {
  const std::int64_t in = x.shape[3] / groups, out = weight.shape[1], kh = weight.shape[2], kw = weight.shape[3];
  Shape shape = {
      x.shape[0], (x.shape[1] - 1) * stride.height - 2 * padding.height + dilation.height * (kh - 1) + more.height + 1,
      (x.shape[2] - 1) * stride.width - 2 * padding.width + dilation.width * (kw - 1) + more.width + 1, out * groups};
  Array y = generate(shape, [&](const Index &at) { return bias.values.empty() ? 0 : bias.at({at[3]}); });
  Index from(4, 0);
  for (from[0] = 0; from[0] < x.shape[0]; ++from[0])
    for (from[1] = 0; from[1] < x.shape[1]; ++from[1])
      for (from[2] = 0; from[2] < x.shape[2]; ++from[2])
        for (from[3] = 0; from[3] < x.shape[3]; ++from[3])
          for (std::int64_t o = 0; o < out; ++o)
            for (std::int64_t a = 0; a < kh; ++a)
              for (std::int64_t b = 0; b < kw; ++b) {
                const Index to = {from[0], from[1] * stride.height + a * dilation.height - padding.height,
                                  from[2] * stride.width + b * dilation.width - padding.width, from[3] / in * out + o};
                if (to[1] >= 0 && to[1] < shape[1] && to[2] >= 0 && to[2] < shape[2])
                  y.at(to) += x.at(from) * weight.at({from[3], o, a, b});
              }
  return y;
}

TEST(Derived, TransposedConvolution) {
  for (std::int64_t rows : {1, 2, 5, 16, 37})
    for (std::int64_t batch : {1, 3}) {
      SCOPED_TRACE(rows);
      Array x = random({batch, rows, 5, 6}), weight = random({6, 7, 3, 3}), bias = random({7}),
            grouped = random({6, 2, 2, 4});
      Expected a(scattered(x, weight, bias, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 1), sumTolerance),
          b(scattered(x, weight, {}, {1, 1}, {0, 0}, {0, 0}, {1, 1}, 1), sumTolerance),
          c(scattered(x, grouped, {}, {2, 3}, {0, 2}, {0, 0}, {3, 1}, 2), sumTolerance);
      runAndCompare(session(), ENTRY(up), rows, batch, Given(x), Given(weight), Given(bias), Given(grouped), a, b, c);
    }
}

TEST(Derived, PhasesOfTransposedConvolutions) {
  for (std::int64_t rows : {1, 2, 5, 16, 37})
    for (std::int64_t batch : {1, 3}) {
      SCOPED_TRACE(rows);
      Array x = random({batch, rows, 5, 6}), weight = random({6, 2, 2, 4}), pixel = random({6, 1, 1, 1});
      Expected a(scattered(x, weight, {}, {1, 4}, {0, 3}, {0, 3}, {1, 1}, 3), sumTolerance),
          b(scattered(x, pixel, {}, {3, 2}, {0, 0}, {2, 0}, {1, 1}, 1), sumTolerance),
          c(scattered(x, weight, {}, {4, 6}, {3, 9}, {1, 4}, {6, 4}, 2), sumTolerance);
      runAndCompare(session(), ENTRY(phases), rows, batch, Given(x), Given(weight), Given(pixel), a, b, c);

      Array signal = random({batch, rows, 6}), taps = random({6, 3, 16}), bias = random({3});
      auto asImage = [](Array of, std::size_t axis) {
        of.shape.insert(of.shape.begin() + static_cast<std::ptrdiff_t>(axis), 1);
        return of;
      };
      auto asSignal = [](Array image) {
        image.shape.erase(image.shape.begin() + 1);
        return image;
      };
      const Array image = asImage(signal, 1), row = asImage(taps, 2);
      Expected d(asSignal(scattered(image, row, bias, {1, 8}, {0, 4}, {0, 0}, {1, 1}, 1)), sumTolerance),
          f(asSignal(scattered(image, row, {}, {1, 5}, {0, 6}, {0, 1}, {1, 1}, 1)), sumTolerance);
      runAndCompare(session(), ENTRY(up_signals), rows, batch, Given(signal), Given(taps), Given(bias), d, f);
    }
}

TEST(Derived, RelativePositionBuckets) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array scores = random({e.rows, e.others});
    ExpectedIntegers buckets(generate(scores.shape, [](const Index &at) -> double {
      const double distance = static_cast<double>(at[1] - at[0]), size = std::fabs(distance);
      const double spread =
          std::min(15.0, 8 + std::floor(std::log(std::max(size, 1.0) / 8) / std::log(16.0) * 8 + 1e-9));
      return (distance > 0 ? 16 : 0) + (size < 8 ? size : spread);
    }));
    runAndCompare(session(), ENTRY(buckets), e.rows, e.others, Given(scores), buckets);
  }
}

} // namespace
} // namespace kiln::testing
