// SPDX-License-Identifier: Apache-2.0
// Data movement is exact: the tolerance is 0.
#include "ops.h"

#include KILN_OPS_HEADER(ops_movement)

#define ENTRY(entry) KILN_OPS_ENTRY(ops_movement, entry)

namespace kiln::testing {
namespace {

auto library() { return KILN_OPS_LIBRARY(ops_movement, OPS_MOVEMENT); }
auto &session() {
  static Session<KILN_OPS_HANDLE(ops_movement)> only(library());
  return only;
}

class Exactly : public Expected {
public:
  explicit Exactly(Array array) : Expected(std::move(array), 0, 0) {}
};

TEST(Movement, Reshape) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 12});
    Exactly a(x), b(x), c(x), d(times(x, number(2)));
    runAndCompare(session(), ENTRY(reshape), e.batch, e.rows, Given(x), a, b, c, d);
  }
}

TEST(Movement, Transpose) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 12});
    Exactly a(x), b(transpose(x, {0, 2, 1})), c(transpose(x, {1, 0, 2})), d(transpose(x, {1, 2, 0})),
        f(transpose(x, {2, 0, 1})), g(transpose(x, {2, 1, 0}));
    runAndCompare(session(), ENTRY(transpose), e.batch, e.rows, Given(x), a, b, c, d, f, g);
  }
}

TEST(Movement, Heads) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 12});
    Exactly heads(transpose(reshaped(x, {e.batch, e.rows, 3, 4}), {0, 2, 1, 3}));
    runAndCompare(session(), ENTRY(heads), e.batch, e.rows, Given(x), heads);
  }
}

TEST(Movement, Concat) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 12}), pair = random({2, e.rows, 12}), five = random({e.batch, 5, 12}),
          seven = random({e.batch, e.rows, 7});
    Exactly a(concat({x, pair}, 0)), b(concat({five, x}, 1)), c(concat({x, seven, x}, 2)), d(concat({x, x}, 1));
    runAndCompare(session(), ENTRY(concat), e.batch, e.rows, Given(x), Given(pair), Given(five), Given(seven), a, b, c,
                  d);
  }
}

TEST(Movement, JoinsTwoDynamicDimensions) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    const std::int64_t length = e.others + e.rows;
    Array x = random({e.batch, e.rows, 12}), y = random({e.batch, e.others, 12});
    Array both = times(concat({y, x}, 1), number(2)), rows = reshaped(both, {e.batch * length, 12});
    Exactly a(both), b(slice(both, 1, 0, e.others)), c(slice(both, 1, e.others, e.rows)), d(concat({rows, rows}, 0)),
        f(transpose(both, {1, 0, 2})), g(reshaped(both, {e.batch, length, 2, 6})), h(slice(both, 1, 1, length - 1)),
        i(concat({x, y, x}, 1));
    ExpectedIntegers j(generate({length}, [](const Index &at) { return static_cast<double>(at[0]); }));
    runAndCompare(session(), ENTRY(joined), e.batch, e.rows, e.others, Given(x), Given(y), a, b, c, d, f, g, h, i, j);
  }
}

TEST(Movement, Slice) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 12}), longer = random({e.rows + 4, 12}), fixed = random({3, 5, 12});
    Exactly a(slice(x, 0, 0, 1)), b(slice(x, 2, 5, 7)), c(slice(longer, 0, 3, e.rows)), d(slice(x, 1, 0, 1)),
        f(slice(fixed, 0, 1, 2)), g(slice(fixed, 1, 2, 3));
    runAndCompare(session(), ENTRY(slice), e.batch, e.rows, Given(x), Given(longer), Given(fixed), a, b, c, d, f, g);
  }
}

TEST(Movement, Last) {
  const Array table = weightOf(library().weights, "table.weight"),
              places = weightOf(library().weights, "places.weight");
  for (const Extents &e : allExtents())
    for (std::int64_t context : {e.rows, e.rows + 1, std::int64_t{53}}) {
      KILN_TRACE_EXTENTS(e);
      const std::int64_t before = context - e.rows;
      Array x = random({e.batch, e.rows, 12}), longer = random({context, 12}), tokens = randomIntegers({e.rows}, 0, 29);
      Exactly row(slice(x, 1, e.rows - 1, 1)), columns(slice(x, 2, 7, 5)), rows(slice(longer, 0, before, e.rows)),
          one(slice(longer, 0, context - 1, 1));
      ExpectedIntegers positions(
          generate({e.rows}, [&](const Index &i) { return static_cast<double>(before + i[0]); }));
      Expected placed(plus(gather(table, tokens, 0), slice(places, 0, before, e.rows)), pointwiseTolerance, 0);
      runAndCompare(session(), ENTRY(last), e.batch, e.rows, context, Given(x), Given(longer), GivenIntegers(tokens),
                    row, columns, rows, one, positions, placed);
    }
}

TEST(Movement, Windows) {
  // After the cyclic shift, some windows contain positions from both sides of the image; the mask separates these.
  auto part = [](std::int64_t at, std::int64_t extent) { return at < extent - 2 ? 0 : at < extent - 1 ? 1 : 2; };
  const Array mask = generate({6, 4, 4}, [&](const Index &i) {
    auto of = [&](std::int64_t place) {
      return std::pair(part(i[0] / 3 * 2 + place / 2, 4), part(i[0] % 3 * 2 + place % 2, 6));
    };
    return of(i[1]) == of(i[2]) ? 0.0 : -100.0;
  });
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, 4, 6, 5});
    Array cut = generate({e.batch, 6, 4, 5}, [&](const Index &i) {
      return x.at({i[0], i[1] / 3 * 2 + i[2] / 2, i[1] % 3 * 2 + i[2] % 2, i[3]});
    });
    Array down = generate(x.shape, [&](const Index &i) { return x.at({i[0], (i[1] + 1) % 4, i[2], i[3]}); }),
          left = generate(x.shape, [&](const Index &i) { return x.at({i[0], i[1], (i[2] + 2) % 6, i[3]}); });
    Exactly a(cut), b(x), c(down), d(left), f(mask);
    runAndCompare(session(), ENTRY(windows), e.batch, Given(x), a, b, c, d, f);
  }
}

TEST(Movement, Gather) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({6, 5, 9}), one = randomIntegers({e.others}, 0, 5), two = randomIntegers({e.rows, 2}, 0, 5);
    Exactly a(gather(x, one, 0)), b(gather(x, one, 1)), c(gather(x, one, 2)), d(gather(x, two, 1));
    runAndCompare(session(), ENTRY(gather), e.rows, e.others, Given(x), GivenIntegers(one), GivenIntegers(two), a, b, c,
                  d);
  }
}

TEST(Movement, Pick) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows, 9}), which = randomIntegers({e.others}, 0, e.rows);
    Exactly rows(gather(x, which, 0));
    runAndCompare(session(), ENTRY(pick), e.rows, e.others, Given(x), GivenIntegers(which), rows);
  }
}

TEST(Movement, Integers) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = randomIntegers({e.rows, 6}, -2000000000, 2000000000);
    ExpectedIntegers a(transpose(x, {1, 0})), b(slice(x, 1, 2, 3)), c(concat({x, x}, 1)), d(plus(x, number(1)));
    runAndCompare(session(), ENTRY(integers), e.rows, GivenIntegers(x), a, b, c, d);
  }
}

TEST(Movement, Embedding) {
  const Array table = weightOf(library().weights, "table.weight"),
              places = weightOf(library().weights, "places.weight");
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array tokens = randomIntegers({e.batch, e.rows}, 0, 29);
    Array rows = gather(table, tokens, 0);
    Exactly plain(rows);
    Expected placed(plus(rows, slice(places, 0, 0, e.rows)), pointwiseTolerance, 0);
    ExpectedIntegers batch(generate({e.batch}, [](const Index &i) { return static_cast<double>(i[0]); })),
        positions(generate({e.rows}, [](const Index &i) { return static_cast<double>(i[0]); }));
    runAndCompare(session(), ENTRY(embedding), e.batch, e.rows, GivenIntegers(tokens), plain, placed, batch, positions);
  }
}

TEST(Movement, Sinusoidal) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows, 14}), encoding = sinusoidal(e.rows, 14);
    Expected alone(encoding, 2e-7, 1), added(plus(x, encoding), 2e-7, 1), faster(sinusoidal(e.rows, 14, 500), 2e-7, 1);
    runAndCompare(session(), ENTRY(sinusoidal), e.rows, Given(x), alone, added, faster);
  }
}

} // namespace
} // namespace kiln::testing
