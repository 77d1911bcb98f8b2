// SPDX-License-Identifier: Apache-2.0
// Each equation is evaluated by one loop over the values of all of its letters.
#include "ops.h"

#include <algorithm>
#include <cmath>
#include <map>

#include KILN_OPS_HEADER(ops_einsum)

#define ENTRY(entry) KILN_OPS_ENTRY(ops_einsum, entry)

namespace kiln::testing {
namespace {

auto &session() {
  static Session<KILN_OPS_HANDLE(ops_einsum)> only(KILN_OPS_LIBRARY(ops_einsum, OPS_EINSUM));
  return only;
}

Array einsum(const std::vector<std::string> &letters, const std::string &result, const std::vector<Array> &operands) {
  std::map<char, std::int64_t> extents, at;
  for (std::size_t i = 0; i < operands.size(); ++i)
    for (std::size_t axis = 0; axis < letters[i].size(); ++axis)
      extents[letters[i][axis]] = operands[i].shape[axis];
  auto indexOf = [&](const std::string &list, const std::map<char, std::int64_t> &of) {
    Index index;
    for (char letter : list)
      index.push_back(of.at(letter));
    return index;
  };
  Array sums = generate(indexOf(result, extents), [](const Index &) { return 0; });
  for (const auto &[letter, extent] : extents)
    at[letter] = 0;
  while (true) {
    double product = 1;
    for (std::size_t i = 0; i < operands.size(); ++i)
      product *= operands[i].at(indexOf(letters[i], at));
    sums.at(indexOf(result, at)) += product;
    auto next = at.begin();
    while (next != at.end() && ++next->second == extents.at(next->first))
      (next++)->second = 0;
    if (next == at.end())
      return sums;
  }
}
/// Errors are relative to the largest sum of magnitudes, since a sum may be near 0.
Expected expected(const std::vector<std::string> &letters, const std::string &result,
                  const std::vector<Array> &operands) {
  std::vector<Array> magnitudes;
  for (const Array &operand : operands)
    magnitudes.push_back(map(operand, [](double value) { return std::fabs(value); }));
  const Array sums = einsum(letters, result, magnitudes);
  return Expected(einsum(letters, result, operands), sumTolerance,
                  *std::max_element(sums.values.begin(), sums.values.end()));
}

TEST(Einsum, OneOperand) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 5}), n = randomIntegers({e.rows, 3}, -9, 10);
    Expected a(einsum({"btc"}, "cbt", {x}), 0, 0), b = expected({"btc"}, "tb", {x}), c = expected({"btc"}, "c", {x}),
                                                   d(x, 0, 0);
    ExpectedIntegers f(einsum({"ij"}, "ji", {n})), g(einsum({"ij"}, "", {n}));
    runAndCompare(session(), ENTRY(single), e.batch, e.rows, Given(x), GivenIntegers(n), a, b, c, f, g, d);
  }
}

TEST(Einsum, Matrices) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 5}), outIn = random({7, 5}), inOut = random({5, 7}), row = random({e.rows, 5});
    Expected a = expected({"btc", "oc"}, "bto", {x, outIn}), b = expected({"btc", "co"}, "bto", {x, inOut}),
             c = expected({"oc", "btc"}, "otb", {outIn, x}), d = expected({"tc", "sc"}, "ts", {row, row}),
             f = expected({"tc", "oc"}, "ot", {row, outIn}), g = expected({"tc", "oc"}, "o", {row, outIn});
    runAndCompare(session(), ENTRY(weights), e.batch, e.rows, Given(x), Given(outIn), Given(inOut), Given(row), a, b, c,
                  d, f, g);
  }
}

TEST(Einsum, BatchedMatrices) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 5}), y = random({e.batch, e.others, 5}), z = random({e.rows, e.batch, 3}),
          w = random({3, 5, 4});
    Expected a = expected({"btc", "bsc"}, "bts", {x, y}), b = expected({"btc", "tbd"}, "cbd", {x, z}),
             c = expected({"btc", "tbd"}, "dtc", {x, z}), d = expected({"btc", "dce"}, "btde", {x, w}),
             f = expected({"btc", "dce"}, "dbt", {x, w}), g = expected({"btc", "btc"}, "b", {x, x}),
             h = expected({"btc", "btc"}, "", {x, x}), i = expected({"tbd", "dce"}, "bec", {z, w});
    runAndCompare(session(), ENTRY(batched), e.batch, e.rows, e.others, Given(x), Given(y), Given(z), Given(w), a, b, c,
                  d, f, g, h, i);
  }
}

TEST(Einsum, ProductsOfElements) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 5}), y = random({e.rows, 3}), v = random({4});
    Expected a = expected({"btc", "td"}, "dtbc", {x, y}), b = expected({"btc", "td"}, "bt", {x, y}),
             c = expected({"td", "c"}, "tdc", {y, v}), d = expected({"btc", "d"}, "", {x, v}),
             f = expected({"c", "c"}, "c", {v, v});
    runAndCompare(session(), ENTRY(products), e.batch, e.rows, Given(x), Given(y), Given(v), a, b, c, d, f);
  }
}

} // namespace
} // namespace kiln::testing
