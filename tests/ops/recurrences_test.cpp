// SPDX-License-Identifier: Apache-2.0
// Recurrences that are one kernel on CPUs, compared with loops in f64.
#include "ops.h"

#include KILN_OPS_HEADER(ops_recurrences)

#define ENTRY(entry) KILN_OPS_ENTRY(ops_recurrences, entry)

namespace kiln::testing {
namespace {

auto &recurrences() {
  static Session<KILN_OPS_HANDLE(ops_recurrences)> only(KILN_OPS_LIBRARY(ops_recurrences, OPS_RECURRENCES));
  return only;
}

/// Sums along time round more than a product.
class AfterSteps : public Expected {
public:
  explicit AfterSteps(Array array) : Expected(std::move(array), 4 * sumTolerance) {}
};

/// Calls the function for each index of the shape.
void forEach(const Shape &shape, const std::function<void(const Index &)> &visit) {
  (void)generate(shape, [&](const Index &i) {
    visit(i);
    return 0;
  });
}
Array zeroArray(const Shape &shape) {
  return generate(shape, [](const Index &) { return 0; });
}
double softplusOf(double x) { return std::log1p(std::exp(-std::abs(x))) + std::max(x, 0.0); }

void testSelective(bool isReverse) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    const std::int64_t steps = e.rows;
    Array u = random({steps, 33}), delta = random({steps, 33}), a = random({33, 5}, -2, -0.25);
    Array b = random({steps, 5}), c = random({steps, 5}), h0 = random({33, 5}), h = h0, y = zeroArray({steps, 33});
    for (std::int64_t i = 0; i < steps; ++i) {
      const std::int64_t t = isReverse ? steps - 1 - i : i;
      forEach({33, 5}, [&](const Index &at) {
        const double dt = softplusOf(delta.at({t, at[0]}));
        double &state = h.at(at);
        state = state * std::exp(dt * a.at(at)) + dt * u.at({t, at[0]}) * b.at({t, at[1]});
        y.at({t, at[0]}) += state * c.at({t, at[1]});
      });
    }
    AfterSteps last(h), all(y);
    if (isReverse)
      runAndCompare(recurrences(), ENTRY(selective_reverse), steps, Given(u), Given(delta), Given(a), Given(b),
                    Given(c), Given(h0), last, all);
    else
      runAndCompare(recurrences(), ENTRY(selective), steps, Given(u), Given(delta), Given(a), Given(b), Given(c),
                    Given(h0), last, all);
  }
}
TEST(Recurrences, SelectiveScan) { testSelective(false); }
TEST(Recurrences, SelectiveScanInReverse) { testSelective(true); }

TEST(Recurrences, LinearAttention) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    const std::int64_t steps = e.rows;
    Array q = random({steps, 3, 7}), k = random({steps, 3, 7}), v = random({steps, 3, 5}),
          g = random({steps, 3}, 0.25, 0.75), s = zeroArray({3, 7, 5}), y = zeroArray({steps, 3, 5});
    for (std::int64_t t = 0; t < steps; ++t)
      forEach({3, 7, 5}, [&](const Index &at) {
        double &state = s.at(at);
        state = state * g.at({t, at[0]}) + k.at({t, at[0], at[1]}) * v.at({t, at[0], at[2]});
        y.at({t, at[0], at[2]}) += state * q.at({t, at[0], at[1]});
      });
    AfterSteps last(s), all(y);
    runAndCompare(recurrences(), ENTRY(linear_attention), steps, Given(q), Given(k), Given(v), Given(g), last, all);
  }
}

TEST(Recurrences, GatedDeltaRule) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    const std::int64_t steps = e.rows;
    Array q = random({steps, 3, 7}), k = random({steps, 3, 7}, -0.5, 0.5), v = random({steps, 3, 5}),
          g = random({steps, 3}), s0 = random({3, 7, 5}), s = s0, y = zeroArray({steps, 3, 5});
    for (std::int64_t t = 0; t < steps; ++t) {
      Array known = zeroArray({3, 5});
      forEach({3, 7, 5}, [&](const Index &at) {
        s.at(at) *= sigmoid(g.at({t, at[0]}));
        known.at({at[0], at[2]}) += s.at(at) * k.at({t, at[0], at[1]});
      });
      forEach({3, 7, 5}, [&](const Index &at) {
        s.at(at) += k.at({t, at[0], at[1]}) * (v.at({t, at[0], at[2]}) - known.at({at[0], at[2]})) * 0.5;
        y.at({t, at[0], at[2]}) += s.at(at) * q.at({t, at[0], at[1]});
      });
    }
    AfterSteps last(s), all(y);
    runAndCompare(recurrences(), ENTRY(delta_rule), steps, Given(q), Given(k), Given(v), Given(g), Given(s0), last,
                  all);
  }
}

TEST(Recurrences, Wkv) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    const std::int64_t steps = e.rows;
    Array r = random({steps, 3, 7}), w = random({steps, 3, 7}, 0.25, 0.75), k = random({steps, 3, 7}),
          v = random({steps, 3, 5}), a = random({steps, 3, 7}, -0.25, 0.25), b = random({steps, 3, 7}, -0.25, 0.25);
    Array s = zeroArray({3, 5, 7}), y = zeroArray({steps, 3, 5});
    for (std::int64_t t = 0; t < steps; ++t) {
      Array removed = zeroArray({3, 5});
      forEach({3, 5, 7}, [&](const Index &at) { removed.at({at[0], at[1]}) += s.at(at) * a.at({t, at[0], at[2]}); });
      forEach({3, 5, 7}, [&](const Index &at) {
        const Index key{t, at[0], at[2]};
        s.at(at) = s.at(at) * w.at(key) + removed.at({at[0], at[1]}) * b.at(key) + v.at({t, at[0], at[1]}) * k.at(key);
        y.at({t, at[0], at[1]}) += s.at(at) * r.at(key);
      });
    }
    AfterSteps last(s), all(y);
    runAndCompare(recurrences(), ENTRY(wkv), steps, Given(r), Given(w), Given(k), Given(v), Given(a), Given(b), last,
                  all);
  }
}

TEST(Recurrences, RunningMaximaAndSums) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows, e.batch, 9}), most = zeroArray({e.batch, 9}), sums = most;
    Array larger = zeroArray(x.shape), before = larger;
    forEach(x.shape, [&](const Index &at) {
      const Index channel{at[1], at[2]};
      before.at(at) = sums.at(channel);
      sums.at(channel) += x.at(at);
      larger.at(at) = most.at(channel) = std::max(most.at(channel), x.at(at));
    });
    AfterSteps lastMost(most), lastSum(sums), all(larger), sumsBefore(before), slices(x);
    runAndCompare(recurrences(), ENTRY(running), e.rows, e.batch, Given(x), lastMost, lastSum, all, sumsBefore, slices);
  }
}

TEST(Recurrences, WithoutBlocks) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows, e.batch, 9}), h0 = random({e.batch, 9}), h = h0, means = zeroArray({e.rows, e.batch});
    for (std::int64_t t = 0; t < e.rows; ++t) {
      const Array old = h, mean = kiln::testing::mean(old, 1);
      forEach(h.shape, [&](const Index &at) {
        h.at(at) = old.at(at) * 0.25 + x.at({t, at[0], at[1]}) - mean.at({at[0]}) * 0.5;
        means.at({t, at[0]}) += h.at(at) / 9;
      });
    }
    AfterSteps last(h), all(means);
    runAndCompare(recurrences(), ENTRY(mixed), e.rows, e.batch, Given(x), Given(h0), last, all);
  }
}

TEST(Recurrences, StatesTakeTurns) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows, e.batch, 9}), a0 = random({e.batch, 9}), b0 = random({e.batch, 9}),
          c0 = random({e.batch, 9}), a = a0, b = b0, c = c0, differences = zeroArray(x.shape);
    for (std::int64_t t = 0; t < e.rows; ++t) {
      Array next = a;
      forEach(a.shape, [&](const Index &at) {
        const Index here{t, at[0], at[1]};
        differences.at(here) = b.at(at) - c.at(at);
        next.at(at) += x.at(here);
      });
      a = b;
      b = c;
      c = next;
    }
    AfterSteps lastA(a), lastB(b), lastC(c), all(differences);
    runAndCompare(recurrences(), ENTRY(turns), e.rows, e.batch, Given(x), Given(a0), Given(b0), Given(c0), lastA, lastB,
                  lastC, all);
  }
}

TEST(Recurrences, OneToken) {
  Array u = random({1, 33}), a = random({33, 5}), h0 = random({33, 5}), h = h0, y = zeroArray({1, 33});
  forEach(h.shape, [&](const Index &at) {
    h.at(at) = h0.at(at) * a.at(at) + u.at({0, at[0]});
    y.at({0, at[0]}) += h.at(at);
  });
  AfterSteps last(h), all(y);
  runAndCompare(recurrences(), ENTRY(token), Given(u), Given(a), Given(h0), last, all);
}

} // namespace
} // namespace kiln::testing
