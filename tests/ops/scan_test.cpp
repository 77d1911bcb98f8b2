// SPDX-License-Identifier: Apache-2.0
// Loops over time compared with loops in f64. States are halved at each step, so that errors do not accumulate.
#include "ops.h"

#include KILN_OPS_HEADER(ops_scan)

#define ENTRY(entry) KILN_OPS_ENTRY(ops_scan, entry)

namespace kiln::testing {
namespace {

auto library() { return KILN_OPS_LIBRARY(ops_scan, OPS_SCAN); }
auto &session() {
  static Session<KILN_OPS_HANDLE(ops_scan)> only(library());
  return only;
}

class Near : public Expected {
public:
  explicit Near(Array array) : Expected(std::move(array), sumTolerance) {}
};

/// Return x[step], and arrays stacked along a new first axis.
Array at(const Array &x, std::int64_t step) {
  return reshaped(slice(x, 0, step, 1), Shape(x.shape.begin() + 1, x.shape.end()));
}
Array stack(const std::vector<Array> &steps) {
  std::vector<Array> raised;
  for (const Array &step : steps) {
    Shape shape{1};
    shape.insert(shape.end(), step.shape.begin(), step.shape.end());
    raised.push_back(reshaped(step, shape));
  }
  return concat(raised, 0);
}
Array zeros(const Shape &shape) {
  return generate(shape, [](const Index &) { return 0; });
}
Array half(const Array &x) { return times(x, number(0.5)); }
/// Computes h / 2 + x for every step; returns all states.
std::vector<Array> decay(Array h, const Array &x) {
  std::vector<Array> all;
  for (std::int64_t t = 0; t < x.shape[0]; ++t)
    all.push_back(h = plus(half(h), at(x, t)));
  return all;
}
Array reversed(const Array &x) {
  std::vector<Array> steps;
  for (std::int64_t t = x.shape[0]; t-- > 0;)
    steps.push_back(at(x, t));
  return stack(steps);
}

TEST(Scan, Elman) {
  auto weights = library().weights;
  Array u = weightOf(weights, "input.weight"), ub = weightOf(weights, "input.bias");
  Array v = weightOf(weights, "hidden.weight"), vb = weightOf(weights, "hidden.bias");
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows, e.batch, 9}), initial = random({e.batch, 7}), h = initial;
    std::vector<Array> all;
    for (std::int64_t t = 0; t < e.rows; ++t)
      all.push_back(h = map(plus(linear(at(x, t), u, ub), linear(h, v, vb)), [](double z) { return std::tanh(z); }));
    Near last(h), states(stack(all)), same(h);
    runAndCompare(session(), ENTRY(elman), e.rows, e.batch, Given(x), Given(initial), last, states, same);
  }
}

TEST(Scan, Reverse) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows, e.batch, 9}), initial = random({e.batch, 9});
    std::vector<Array> all = decay(initial, reversed(x));
    Near last(all.back()), states(reversed(stack(all)));
    runAndCompare(session(), ENTRY(reverse), e.rows, e.batch, Given(x), Given(initial), last, states);
  }
}

TEST(Scan, SeveralStatesSequencesAndOutputs) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows, e.batch, 9}), y = random({e.rows, e.batch, 9});
    Array a = random({e.batch, 9}), b = random({e.batch, 9});
    Given a0(a), b0(b);
    std::vector<Array> all, states;
    for (std::int64_t t = 0; t < e.rows; ++t) {
      Array next = plus(half(a), at(x, t));
      all.push_back(next);
      states.push_back(a);
      a = b;
      b = next;
    }
    Near lastA(a), lastB(b), next(stack(all)), before(stack(states)), same(y), again(stack(all));
    runAndCompare(session(), ENTRY(several), e.rows, e.batch, Given(x), Given(y), a0, b0, lastA, lastB, next, before,
                  same, again);
  }
}

TEST(Scan, WithoutAStateByTheNumberOfTheStep) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows, e.batch, 9}), outside = random({e.batch, 9});
    std::vector<Array> all;
    for (std::int64_t t = 0; t < e.rows; ++t)
      all.push_back(t < 2 ? at(x, t) : times(outside, number(2)));
    Near expected(stack(all));
    runAndCompare(session(), ENTRY(each), e.rows, e.batch, Given(x), Given(outside), expected);
  }
}

// Elements after a sequence's end are NaN, which must not affect the results.
TEST(Scan, SequencesEnd) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows, e.batch, 9}), n = randomIntegers({e.batch}, 0, e.rows + 1);
    Array padded = generate(x.shape, [&](const Index &i) { return i[0] < n.at({i[1]}) ? x.at(i) : NAN; });
    std::vector<Array> running = decay(zeros({e.batch, 9}), x);
    Near all(
        generate(x.shape, [&](const Index &i) { return i[0] < n.at({i[1]}) ? running[i[0]].at({i[1], i[2]}) : 0; }));
    Near last(generate({e.batch, 9}, [&](const Index &i) {
      auto end = static_cast<std::int64_t>(n.at({i[0]}));
      return end > 0 ? running[end - 1].at(i) : 0;
    }));
    runAndCompare(session(), ENTRY(lengths), e.rows, e.batch, Given(padded), GivenIntegers(n), last, all);
  }
}

TEST(Scan, CarriesIntegers) {
  Array table = weightOf(library().weights, "table.weight");
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = randomIntegers({e.rows, e.batch}, 0, 29), state = zeros({e.batch});
    std::vector<Array> all;
    for (std::int64_t t = 0; t < e.rows; ++t) {
      Array before = gather(table, state, 0);
      all.push_back(before);
      state = argmax(plus(gather(table, at(x, t), 0), before), 1);
    }
    ExpectedIntegers last(state);
    Near rows(stack(all));
    runAndCompare(session(), ENTRY(tokens), e.rows, e.batch, GivenIntegers(x), last, rows);
  }
}

TEST(Scan, RefusesTokensThatTheTableHasNot) {
  Input<std::int32_t> tokens({28, 29});
  std::vector<std::byte> arena(1 << 20);
  std::int32_t last[1];
  float rows[22];
  kiln_error_t error{};
  auto *aligned = reinterpret_cast<void *>((reinterpret_cast<std::uintptr_t>(arena.data()) + 4095) / 4096 * 4096);
  kiln_call_t call{aligned, arena.size() - 4096, nullptr, &error};
  EXPECT_EQ(ENTRY(tokens)(session().get(), &call, 2, 1, tokens.values.data(), last, rows), KILN_INDEX_OUT_OF_RANGE)
      << error.message;
}

TEST(Scan, InALoop) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.others, e.rows, 9}), h = zeros({9});
    std::vector<Array> all;
    for (std::int64_t s = 0; s < e.others; ++s) {
      std::vector<Array> inner = decay(h, reversed(at(x, s)));
      h = inner.back();
      all.push_back(reversed(stack(inner)));
    }
    Near last(h), sums(stack(all));
    runAndCompare(session(), ENTRY(nested), e.rows, e.others, Given(x), last, sums);
  }
}

TEST(Scan, InAStackAndAroundOne) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows, e.batch, 9}), given = x;
    for (int layer = 0; layer < 3; ++layer)
      x = stack(decay(zeros({e.batch, 9}), x));
    std::vector<Array> all = decay(zeros({e.batch, 9}), x);
    Near last(all.back()), states(stack(all));
    runAndCompare(session(), ENTRY(stacks), e.rows, e.batch, Given(given), last, states);
  }
}

TEST(Scan, OfAFixedNumberOfSteps) {
  Array one = random({1, 9}), five = random({5, 9});
  std::vector<Array> as = decay(zeros({9}), one), bs = decay(as.back(), five);
  Near a(as.back()), all(stack(as)), b(bs.back()), states(stack(bs));
  runAndCompare(session(), ENTRY(fixed), Given(one), Given(five), a, all, b, states);
}

Array tanhOf(const Array &x) {
  return map(x, [](double z) { return std::tanh(z); });
}

TEST(Stacks, CarryTwoValues) {
  auto weights = library().weights;
  const double gates[] = {0.5, -1, 2};
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows, e.batch, 9}), y = random({e.batch, 9}), u = x, v = y;
    for (int layer = 0; layer < 3; ++layer) {
      const std::string name = "crossed." + std::to_string(layer) + ".fc.";
      u = plus(tanhOf(linear(u, weightOf(weights, name + "weight"), weightOf(weights, name + "bias"))), v);
      v = times(v, number(gates[layer]));
    }
    Near first(u), second(v);
    runAndCompare(session(), ENTRY(two_values), e.rows, e.batch, Given(x), Given(y), first, second);
  }
}

TEST(Stacks, FollowAPattern) {
  auto weights = library().weights;
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows, e.batch, 9}), gates = random({8}, 0.25, 1), state = x;
    std::vector<Array> all;
    for (std::int64_t layer = 0; layer < 8; ++layer) {
      const std::string name = "layers." + std::to_string(layer) + ".";
      const Array gate = at(gates, layer);
      all.push_back(state);
      if (layer % 3 == 2)
        state = plus(state, times(weightOf(weights, name + "shift"), gate));
      else
        state = times(tanhOf(linear(state, weightOf(weights, name + "fc.weight"), weightOf(weights, name + "fc.bias"))),
                      gate);
    }
    Near last(state), given(stack(all));
    runAndCompare(session(), ENTRY(pattern), e.rows, e.batch, Given(x), Given(gates), last, given);
  }
}

/// Returns the array with zeros in the steps from `count` on.
Array cleared(const Array &x, std::int64_t count) {
  return generate(x.shape, [&](const Index &i) { return i[0] < count ? x.at(i) : 0; });
}

TEST(ScanUntil, EndsAfterAStep) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows, e.batch, 9}), n = randomIntegers({1}, 0, e.rows + 2);
    const auto end = static_cast<std::int64_t>(n.values[0]), count = std::min(end + 1, e.rows);
    std::vector<Array> running = decay(zeros({e.batch, 9}), x);
    Near last(running[static_cast<std::size_t>(count - 1)]), states(cleared(stack(running), count));
    ExpectedIntegers steps(generate({e.rows}, [&](const Index &i) { return i[0] < count ? i[0] + 1 : 0; })),
        early(generate({e.rows}, [&](const Index &i) { return i[0] < count && i[0] < end; })),
        iterations(number(static_cast<double>(count)));
    runAndCompare(session(), ENTRY(ending), e.rows, e.batch, Given(x), GivenIntegers(n), last, states, steps, early,
                  iterations);
  }
}

TEST(ScanUntil, EndsInALoop) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.others, e.rows, 9}), n = randomIntegers({e.others}, 0, e.rows + 2), h = zeros({9});
    std::vector<Array> all, counts;
    for (std::int64_t s = 0; s < e.others; ++s) {
      const auto count = std::min(static_cast<std::int64_t>(n.at({s})) + 1, e.rows);
      std::vector<Array> inner = decay(h, at(x, s));
      h = inner[static_cast<std::size_t>(count - 1)];
      all.push_back(cleared(stack(inner), count));
      counts.push_back(number(static_cast<double>(count)));
    }
    Near last(h), states(stack(all));
    ExpectedIntegers iterations(stack(counts));
    runAndCompare(session(), ENTRY(ending_again), e.rows, e.others, Given(x), GivenIntegers(n), last, states,
                  iterations);
  }
}

} // namespace
} // namespace kiln::testing
