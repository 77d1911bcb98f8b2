// SPDX-License-Identifier: Apache-2.0
#include "ops.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include KILN_OPS_HEADER(ops_grouped)

#define ENTRY(entry) KILN_OPS_ENTRY(ops_grouped, entry)

namespace kiln::testing {
namespace {

auto library() { return KILN_OPS_LIBRARY(ops_grouped, OPS_GROUPED); }
auto &session() {
  static Session<KILN_OPS_HANDLE(ops_grouped)> only(library());
  return only;
}
Array weight(const std::string &name) { return weightOf(library().weights, name); }

/// Groups of any sizes, groups without rows, all rows in the first, the last or one other group, one row in each of
/// several groups, and ends that are out of range or in no order.
std::vector<Array> allEnds(std::int64_t rows) {
  Array some = randomIntegers({5}, 0, rows + 1);
  std::sort(some.values.begin(), some.values.end());
  std::vector<Array> all{some, randomIntegers({5}, -3, rows + 4)};
  const double n = static_cast<double>(rows);
  for (const std::vector<double> &ends :
       {std::vector<double>{n, n, n, n, n}, {0, 0, 0, 0, n}, {0, 0, n, n, n}, {1, 2, 3, 4, n}, {0, 0, 0, 0, 0}})
    all.push_back(Array{{5}, ends});
  return all;
}

/// The first group that ends after the row, else the last one.
std::int64_t groupOf(std::int64_t row, const Array &ends) {
  for (std::int64_t group = 0; group + 1 < ends.shape[0]; ++group)
    if (static_cast<double>(row) < ends.values[group])
      return group;
  return ends.shape[0] - 1;
}

/// Returns the linear of each row's group; without biases if `bias` has no elements.
Array groupedLinear(const Array &x, const Array &weight, const Array &ends, const Array &bias = {},
                    bool swapped = false) {
  const std::int64_t groups = ends.shape[0];
  std::vector<Array> rows;
  for (std::int64_t row = 0; row < x.shape[0]; ++row) {
    auto partOf = [&](const Array &all) {
      const std::int64_t each = all.shape[0] / groups;
      return slice(all, 0, groupOf(row, ends) * each, each);
    };
    rows.push_back(linear(slice(x, 0, row, 1), partOf(weight), bias.values.empty() ? bias : partOf(bias), swapped));
  }
  return concat(rows, 0);
}

TEST(Grouped, Linear) {
  for (const Extents &e : allExtents())
    for (const Array &ends : allEnds(e.rows)) {
      KILN_TRACE_EXTENTS(e);
      Array x = random({e.rows, 23});
      Expected a(groupedLinear(x, weight("plain"), ends, weight("plain_bias")), sumTolerance),
          b(groupedLinear(x, weight("wide"), ends), sumTolerance),
          c(groupedLinear(x, weight("swapped"), ends, weight("swapped_bias"), true), sumTolerance);
      runAndCompare(session(), ENTRY(linear), e.rows, Given(x), GivenIntegers(ends), a, b, c);
    }
}

TEST(Grouped, Epilogue) {
  for (const Extents &e : allExtents())
    for (const Array &ends : allEnds(e.rows)) {
      KILN_TRACE_EXTENTS(e);
      Array x = random({e.rows, 23});
      Array hidden = times(map(groupedLinear(x, weight("gate"), ends), silu),
                           groupedLinear(x, weight("up"), ends, weight("up_bias")));
      Expected y(plus(times(groupedLinear(hidden, weight("down"), ends), number(0.5)), x), sumTolerance);
      runAndCompare(session(), ENTRY(epilogue), e.rows, Given(x), GivenIntegers(ends), y);
    }
}

TEST(Grouped, OneGroupHasAllRows) {
  for (double end : {0.0, 2.0, 37.0}) {
    Array x = random({7, 23});
    Expected y(linear(x, weight("only")), sumTolerance);
    runAndCompare(session(), ENTRY(one_group), std::int64_t{7}, Given(x), GivenIntegers(Array{{1}, {end}}), y);
  }
}

TEST(Grouped, FewRowsWithComputedEnds) {
  for (const Array &ends : allEnds(3)) {
    Array x = random({3, 23});
    Expected y(groupedLinear(map(x, [](double z) { return std::tanh(z); }), weight("plain"), plus(ends, number(1))),
               sumTolerance);
    runAndCompare(session(), ENTRY(few_rows), Given(x), GivenIntegers(ends), y);
  }
}

/// A mixture of experts, written as a loop over tokens.
struct Mixture {
  std::string name;
  std::size_t experts, top;
  bool isSigmoid, isNormalized;
  double scale;

  Array perceptron(const Array &x, const std::string &layer) const {
    auto project = [&](const Array &from, const char *leaf) {
      return linear(from, weight(name + "." + layer + "." + leaf + ".weight"));
    };
    return project(times(map(project(x, "gate_proj"), silu), project(x, "up_proj")), "down_proj");
  }

  /// Returns the result for one token, [1, width].
  Array operator()(const Array &x) const {
    Array logits = linear(x, weight(name + ".gate.weight"));
    Array scores = isSigmoid ? map(logits, sigmoid) : softmax(logits, 1);
    std::vector<std::size_t> order(experts);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return logits.values[a] > logits.values[b]; });
    double sum = 0;
    for (std::size_t i = 0; i < top; ++i)
      sum += scores.values[order[i]];
    Array result = times(x, number(0));
    for (std::size_t i = 0; i < top; ++i) {
      const double gate = scores.values[order[i]] * scale / (isNormalized ? sum : 1);
      result = plus(result, times(perceptron(x, "experts." + std::to_string(order[i])), number(gate)));
    }
    return result;
  }

  /// The same, plus the shared expert times its gate.
  Array withShared(const Array &x) const {
    Array gate = map(linear(x, weight(name + ".shared_expert_gate.weight")), sigmoid);
    return plus((*this)(x), times(perceptron(x, "shared_expert"), gate));
  }
};

const Mixture chosen{"chosen", 6, 2, false, true, 1}, single{"single", 3, 1, true, false, 2.5};

TEST(Grouped, Experts) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows, 23});
    std::vector<Array> ofChosen, ofSingle;
    for (std::int64_t row = 0; row < e.rows; ++row) {
      ofChosen.push_back(chosen(slice(x, 0, row, 1)));
      ofSingle.push_back(single.withShared(slice(x, 0, row, 1)));
    }
    Expected a(concat(ofChosen, 0), sumTolerance), b(concat(ofSingle, 0), sumTolerance);
    runAndCompare(session(), ENTRY(experts), e.rows, Given(x), a, b);
  }
}

TEST(Grouped, ExpertsOfOneToken) {
  Array x = random({1, 23});
  Expected y(chosen(x), sumTolerance);
  runAndCompare(session(), ENTRY(one_token), Given(x), y);
}

} // namespace
} // namespace kiln::testing
