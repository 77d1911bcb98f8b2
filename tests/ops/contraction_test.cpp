// SPDX-License-Identifier: Apache-2.0
#include "ops.h"

#include <algorithm>
#include <cmath>

#include KILN_OPS_HEADER(ops_contraction)

#define ENTRY(entry) KILN_OPS_ENTRY(ops_contraction, entry)

namespace kiln::testing {
namespace {

auto library() { return KILN_OPS_LIBRARY(ops_contraction, OPS_CONTRACTION); }
auto &session() {
  static Session<KILN_OPS_HANDLE(ops_contraction)> only(library());
  return only;
}

/// The weights of a layer, from the counter.
struct Layer {
  explicit Layer(const std::string &name, bool swapped = false, bool hasBias = true)
      : weight(weightOf(library().weights, name + ".weight")), swapped(swapped) {
    if (hasBias)
      bias = weightOf(library().weights, name + ".bias");
  }
  Array operator()(const Array &x) const { return linear(x, weight, bias, swapped); }
  Array weight, bias;
  bool swapped;
};

TEST(Contraction, Linear) {
  const Layer plain("plain"), swapped("swapped", true), bare("bare", false, false),
      bareSwapped("bare_swapped", true, false), narrow("narrow");
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 23});
    Expected a(plain(x), sumTolerance), b(swapped(x), sumTolerance), c(bare(x), sumTolerance),
        d(bareSwapped(x), sumTolerance), f(narrow(x), sumTolerance, 1);
    runAndCompare(session(), ENTRY(linear), e.batch, e.rows, Given(x), a, b, c, d, f);
  }
}

TEST(Contraction, Thin) {
  const Layer thin("thin"), plain("plain");
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows, 1}), vector = random({23});
    Expected a(thin(x), sumTolerance), b(plain(vector), sumTolerance);
    runAndCompare(session(), ENTRY(thinner), e.rows, Given(x), Given(vector), a, b);
  }
}

TEST(Contraction, Large) {
  const Layer deep("deep");
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows, 600});
    Expected y(deep(x), sumTolerance);
    runAndCompare(session(), ENTRY(large), e.rows, Given(x), y);
  }
}

TEST(Contraction, Epilogue) {
  const Layer square("square"), plain("plain"), swapped("swapped", true), fc1("mlp.fc1"), fc2("mlp.fc2");
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 23}), residual = random({e.batch, e.rows, 23});
    Expected a(plus(residual, square(x)), sumTolerance), b(larger(plain(x), number(0)), sumTolerance),
        c(times(map(swapped(x), silu), number(0.5)), sumTolerance), d(fc2(map(fc1(x), gelu)), sumTolerance);
    runAndCompare(session(), ENTRY(epilogue), e.batch, e.rows, Given(x), Given(residual), a, b, c, d);
  }
}

TEST(Contraction, Joined) {
  const Layer query("query"), key("key"), value("value");
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 23});
    Expected a(query(x), sumTolerance), b(key(x), sumTolerance), c(value(x), sumTolerance);
    runAndCompare(session(), ENTRY(joined), e.batch, e.rows, Given(x), a, b, c);
  }
}

TEST(Contraction, TiedWeights) {
  const Array table = weightOf(library().weights, "tied.weight");
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array tokens = randomIntegers({e.rows}, 0, 31);
    Expected logits(linear(gather(table, tokens, 0), table), sumTolerance);
    runAndCompare(session(), ENTRY(tied_weights), e.rows, GivenIntegers(tokens), logits);
  }
}

TEST(Contraction, Stack) {
  auto step = [](const Array &x, const std::string &name) {
    return plus(x, map(Layer(name + ".fc")(x), [](double v) { return std::tanh(v); }));
  };
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows, 23}), once = x, nested = x;
    for (int i = 0; i < 3; ++i)
      once = step(once, "steps." + std::to_string(i));
    for (int i = 0; i < 2; ++i) {
      const std::string group = "groups." + std::to_string(i);
      for (int j = 0; j < 2; ++j)
        nested = step(nested, group + ".inner." + std::to_string(j));
      nested = layerNorm(nested, weightOf(library().weights, group + ".norm.weight"),
                         weightOf(library().weights, group + ".norm.bias"), 1e-5);
    }
    Expected a(once, sumTolerance), b(nested, 2 * sumTolerance);
    runAndCompare(session(), ENTRY(stack), e.rows, Given(x), a, b);
  }
}

/// Returns the largest sum of the terms' magnitudes, to which the errors of results near 0 are relative.
double magnitude(const Array &product) { return *std::max_element(product.values.begin(), product.values.end()); }
Array absolute(const Array &x) {
  return map(x, [](double value) { return std::fabs(value); });
}

TEST(Contraction, Matmul) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array a = random({e.rows, 17}), b = random({17, e.others}), c = random({e.others, 9});
    const Array terms = matmul(absolute(a), absolute(b));
    Expected scores(matmul(a, b), sumTolerance, magnitude(terms)),
        result(matmul(matmul(a, b), c), sumTolerance, magnitude(matmul(terms, absolute(c))));
    runAndCompare(session(), ENTRY(matmul), e.rows, e.others, Given(a), Given(b), Given(c), scores, result);
  }
}

TEST(Contraction, Batched) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array a = random({e.batch, 3, e.rows, 5}), b = random({e.batch, 3, 5, e.others}), shared = random({3, 5, e.others}),
          once = random({e.batch, 1, 5, e.others});
    const auto product = [&a = a](const Array &right) {
      return Expected(matmul(a, right), sumTolerance, magnitude(matmul(absolute(a), absolute(right))));
    };
    Expected x = product(b), y = product(shared), z = product(once);
    runAndCompare(session(), ENTRY(batched), e.batch, e.rows, e.others, Given(a), Given(b), Given(shared), Given(once),
                  x, y, z);
  }
}

TEST(Contraction, Transposed) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array a = random({e.batch, e.rows, 18}), b = random({e.batch, e.others, 18});
    const Array swapped = transpose(b, {0, 2, 1});
    Expected y(times(matmul(a, swapped), number(0.25)), sumTolerance,
               0.25 * magnitude(matmul(absolute(a), absolute(swapped))));
    runAndCompare(session(), ENTRY(transposed), e.batch, e.rows, e.others, Given(a), Given(b), y);
  }
}

} // namespace
} // namespace kiln::testing
