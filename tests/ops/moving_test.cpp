// SPDX-License-Identifier: Apache-2.0
// The operations move elements, so the tolerance is 0, except for sums.
#include "ops.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include KILN_OPS_HEADER(ops_moving)

#define ENTRY(entry) KILN_OPS_ENTRY(ops_moving, entry)

namespace kiln::testing {
namespace {

auto &session() {
  static Session<KILN_OPS_HANDLE(ops_moving)> only(KILN_OPS_LIBRARY(ops_moving, OPS_MOVING));
  return only;
}

class Exactly : public Expected {
public:
  explicit Exactly(Array array) : Expected(std::move(array), 0, 0) {}
};

TEST(Moving, Axes) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 12});
    Exactly a(x), b(x), c(x), d(slice(x, 2, 11, 1)), f(maximum(x, 0));
    Expected g(sum(x, 1), sumTolerance);
    ExpectedIntegers h(argmax(x, 2));
    Expected i(minus(x, reshaped(mean(x, 2), {e.batch, e.rows, 1})), sumTolerance);
    runAndCompare(session(), ENTRY(axes), e.batch, e.rows, Given(x), a, b, c, d, g, f, h, i);
  }
}

TEST(Moving, OneHot) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    // Some indices are outside of both results.
    Array i = randomIntegers({e.batch, e.rows}, -2, 9), x = random({e.batch, e.rows, 12});
    auto hot = [&](std::int64_t classes) {
      return generate({e.batch, e.rows, classes},
                      [&](const Index &at) { return i.at({at[0], at[1]}) == static_cast<double>(at[2]) ? 1.0 : 0.0; });
    };
    Exactly a(hot(7));
    ExpectedIntegers b(hot(5));
    const Array isHere = hot(12);
    Exactly c(generate(x.shape, [&](const Index &at) { return isHere.at(at) == 1 ? x.at(at) : -1.0; }));
    runAndCompare(session(), ENTRY(one_hot), e.batch, e.rows, GivenIntegers(i), Given(x), a, b, c);
  }
}

/// Returns x with more elements on both sides of an axis, each of which is the element of x at `from(position)`, where
/// the first element of x has position 0.
Array padded(const Array &x, std::size_t axis, std::int64_t before, std::int64_t after,
             const std::function<std::int64_t(std::int64_t)> &from) {
  Shape shape = x.shape;
  shape[axis] += before + after;
  return generate(shape, [&](Index at) {
    at[axis] = from(at[axis] - before);
    return x.at(at);
  });
}
Array reflected(const Array &x, std::size_t axis, std::int64_t before, std::int64_t after) {
  const std::int64_t last = x.shape[axis] - 1;
  return padded(x, axis, before, after, [=](std::int64_t i) { return i < 0 ? -i : i > last ? 2 * last - i : i; });
}
Array extended(const Array &x, std::size_t axis, std::int64_t before, std::int64_t after) {
  const std::int64_t last = x.shape[axis] - 1;
  return padded(x, axis, before, after, [=](std::int64_t i) { return std::clamp<std::int64_t>(i, 0, last); });
}
Array wrapped(const Array &x, std::size_t axis, std::int64_t before, std::int64_t after) {
  const std::int64_t extent = x.shape[axis];
  return padded(x, axis, before, after, [=](std::int64_t i) { return (i + extent) % extent; });
}

TEST(Moving, Pads) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows + 4, 6}), n = randomIntegers({e.batch, e.rows}, -2000000000, 2000000000);
    Exactly a(reflected(x, 1, 4, 3)), b(reflected(x, 1, 1, 0)), c(reflected(x, 2, 5, 5)), d(extended(x, 1, 3, 7)),
        f(extended(x, 2, 0, 2)), g(wrapped(x, 1, 5, 2)), h(wrapped(x, 2, 0, 6)), j(x);
    ExpectedIntegers i(extended(n, 1, 2, 1));
    runAndCompare(session(), ENTRY(pads), e.batch, e.rows, Given(x), GivenIntegers(n), a, b, c, d, f, g, h, i, j);
  }
}

Array rolled(const Array &x, std::size_t axis, std::int64_t by) {
  const std::int64_t extent = x.shape[axis];
  return generate(x.shape, [&](Index at) {
    at[axis] = ((at[axis] - by) % extent + extent) % extent;
    return x.at(at);
  });
}

TEST(Moving, Rolls) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows + 4, 6}), n = randomIntegers({e.batch, e.rows}, -2000000000, 2000000000);
    Exactly a(rolled(x, 2, 5)), b(rolled(x, 2, -13)), c(rolled(x, 1, 3)), d(rolled(x, 1, -4)), f(rolled(x, 1, 5)),
        g(rolled(x, 1, -29)), h(rolled(x, 0, 2)), j(x), k(x);
    ExpectedIntegers i(rolled(n, 1, 1));
    runAndCompare(session(), ENTRY(rolls), e.batch, e.rows, Given(x), GivenIntegers(n), a, b, c, d, f, g, h, i, j, k);
  }
}

/// Indices outside of the axis are clamped.
Array taken(const Array &x, const Array &indices, std::size_t axis) {
  return generate(indices.shape, [&](Index at) {
    at[axis] = std::clamp<std::int64_t>(static_cast<std::int64_t>(indices.at(at)), 0, x.shape[axis] - 1);
    return x.at(at);
  });
}

TEST(Moving, Takes) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 12}), middle = randomIntegers({e.batch, e.others, 12}, -2, e.rows + 2),
          last = randomIntegers({e.batch, e.rows, 5}, -1, 13), first = randomIntegers({2, e.rows, 12}, 0, e.batch),
          n = randomIntegers({e.batch, e.rows}, 0, e.rows), longer = random({e.batch, e.rows + 4, 6}),
          places = randomIntegers({e.batch, e.others, 6}, -2, e.rows + 6);
    middle.values[0] = 2147483647;
    last.values[0] = -2147483648.0;
    Exactly a(taken(x, middle, 1)), b(taken(x, last, 2)), c(taken(x, first, 0));
    longer.values[0] = NAN; // only its own place has it
    Exactly f(taken(longer, places, 1));
    ExpectedIntegers d(taken(n, n, 1)),
        g(taken(map(longer, [](double value) { return value > 0 ? 1.0 : 0.0; }), places, 1));
    runAndCompare(session(), ENTRY(takes), e.batch, e.rows, e.others, Given(x), GivenIntegers(middle),
                  GivenIntegers(last), GivenIntegers(first), GivenIntegers(n), Given(longer), GivenIntegers(places), a,
                  b, c, d, f, g);
  }
}

/// Adds each element of the source to x where `indexOf` its position is; indices outside of the axis are ignored.
Array added(Array x, std::size_t axis, const Array &source, const std::function<double(const Index &)> &indexOf) {
  generate(source.shape, [&](const Index &at) {
    Index to = at;
    to[axis] = static_cast<std::int64_t>(indexOf(at));
    if (to[axis] >= 0 && to[axis] < x.shape[axis])
      x.at(to) += source.at(at);
    return 0.0;
  });
  return x;
}

TEST(Moving, Adds) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 12}), rows = randomIntegers({e.others}, -1, e.rows + 2),
          source = random({e.batch, e.others, 12}), columns = randomIntegers({e.batch, e.rows, 5}, -1, 13),
          elements = random({e.batch, e.rows, 5}), n = randomIntegers({e.batch, e.rows}, -3, 40);
    // Rows and columns without an index do not get a NaN.
    elements.values[0] = source.values[0] = NAN;
    Array none{{7, e.rows}, std::vector<double>(static_cast<std::size_t>(7 * e.rows))};
    Expected a(added(x, 1, source, [&](const Index &at) { return rows.at({at[1]}); }), sumTolerance),
        b(added(x, 2, elements, [&](const Index &at) { return columns.at(at); }), sumTolerance);
    ExpectedIntegers c(added(none, 0, n, [](const Index &at) { return static_cast<double>(at[0]); })),
        d(added(n, 1, n, [&](const Index &at) { return n.at(at); }));
    runAndCompare(session(), ENTRY(adds), e.batch, e.rows, e.others, Given(x), GivenIntegers(rows), Given(source),
                  GivenIntegers(columns), Given(elements), GivenIntegers(n), a, b, c, d);
  }
}

/// Sorts the lines of an axis, stably and with NaN as the largest number, or returns the positions of their elements.
Array sorted(const Array &x, int axis, bool isDescending, bool asPlaces) {
  auto isBefore = [](double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; };
  return alongAxis(x, axis, [&](std::vector<double> &line) {
    const std::vector<double> before = line;
    std::vector<std::size_t> places(line.size());
    std::iota(places.begin(), places.end(), 0);
    std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
      return isDescending ? isBefore(before[b], before[a]) : isBefore(before[a], before[b]);
    });
    for (std::size_t i = 0; i < line.size(); ++i)
      line[i] = asPlaces ? static_cast<double>(places[i]) : before[places[i]];
  });
}

TEST(Moving, Sorts) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    // Integers, so that lines have equal elements.
    Array x = randomIntegers({e.batch, e.rows, 12}, -9, 10), n = randomIntegers({e.rows, 7}, -9, 10);
    const double special[] = {NAN, -INFINITY, INFINITY, -0.0, 0, NAN, 3.4028234663852886e38, -3.4028234663852886e38};
    std::copy(std::begin(special), std::end(special), x.values.begin() + 1);
    n.values[0] = -2147483648.0;
    n.values[6] = 2147483647;
    Exactly a(sorted(x, 2, false, false)), c(sorted(x, 1, true, false));
    ExpectedIntegers b(sorted(x, 2, false, true)), d(sorted(x, 1, true, true)), f(sorted(n, 0, false, false)),
        g(sorted(n, 0, false, true)), h(sorted(n, 1, true, true));
    runAndCompare(session(), ENTRY(sorts), e.batch, e.rows, Given(x), GivenIntegers(n), a, b, c, d, f, g, h);
  }
}

TEST(Moving, LongSorts) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows, 1500}), n = randomIntegers({1500}, -3, 1600);
    std::copy_n(x.values.begin() + 700, 300, x.values.begin()); // equal elements
    x.values[17] = NAN;
    Array places = sorted(x, 1, false, true), none{{1500}, std::vector<double>(1500)},
          ones{{1500}, std::vector<double>(1500, 1)};
    ExpectedIntegers a(places), c(slice(sorted(x, 1, true, true), 1, 0, 40)), d(slice(places, 1, 0, 7)),
        f(added(none, 0, ones, [&](const Index &at) { return n.at(at); }));
    Exactly b(slice(sorted(x, 1, true, false), 1, 0, 40));
    runAndCompare(session(), ENTRY(long_sorts), e.rows, Given(x), GivenIntegers(n), a, b, c, d, f);
  }
}

TEST(Moving, Ranks) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({2, e.batch, 1, 3, e.rows, 2, 1, 5}), y = random({3, 1, 2, 1, 5});
    const std::vector<std::size_t> from = {7, 4, 0, 2, 6, 1, 5, 3};
    Shape turned;
    for (std::size_t axis : from)
      turned.push_back(x.shape[axis]);
    Exactly a(generate(turned, [&](const Index &at) {
      Index source(8);
      for (std::size_t i = 0; i < 8; ++i)
        source[from[i]] = at[i];
      return x.at(source);
    }));
    Expected b(generate(x.shape, [&](const Index &at) { return x.at(at) + y.at({at[3], 0, at[5], 0, at[7]}); }),
               sumTolerance),
        c(sum(x, 4), sumTolerance);
    Exactly d(maximum(x, 0)), f(generate({2, e.batch, 2, 3, e.rows, 1, 1, 5}, [&](Index at) {
      const double factor = at[2] == 1 ? 2 : 1;
      at[2] = 0, at[5] = 1;
      return factor * x.at(at);
    }));
    ExpectedIntegers g(sorted(x, 3, false, true));
    Exactly h(generate({2, e.batch, 1, 3, e.rows, 2, 1, 2}, [&](Index at) {
      at[7] = at[7] == 0 ? 4 : 1;
      return x.at(at);
    }));
    runAndCompare(session(), ENTRY(ranks), e.batch, e.rows, Given(x), Given(y), a, b, c, d, f, g, h);
  }
}

} // namespace
} // namespace kiln::testing
