// SPDX-License-Identifier: Apache-2.0
#include "ops.h"

#include <cmath>
#include <limits>

#include KILN_OPS_HEADER(ops_pointwise)

#define ENTRY(entry) KILN_OPS_ENTRY(ops_pointwise, entry)

namespace kiln::testing {
namespace {

auto &session() {
  static Session<KILN_OPS_HANDLE(ops_pointwise)> only(KILN_OPS_LIBRARY(ops_pointwise, OPS_POINTWISE));
  return only;
}

constexpr double tolerance = pointwiseTolerance;
/// Results that are near 0 for arguments that are not: the tolerance is relative to 1.
constexpr double one = 1;

Array apply(const Array &x, double (*function)(double)) { return map(x, function); }

TEST(Pointwise, Binary) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    const Shape shape{e.rows, 19};
    Array a = random(shape), b = random(shape, 0.5, 3);
    Expected sum(plus(a, b), tolerance, 0), difference(minus(a, b), tolerance, 0), product(times(a, b), tolerance, 0),
        quotient(over(a, b), tolerance, 0), most(larger(a, b), 0, 0);
    runAndCompare(session(), ENTRY(binary), e.rows, Given(a), Given(b), sum, difference, product, quotient, most);
  }
}

TEST(Pointwise, MaximumOfExtremes) {
  for (double usual : {double(NAN), -double(INFINITY), 0.0}) {
    Array a = randomExtremes({37, 19}, usual), b = randomExtremes({37, 19}, usual);
    Expected most(larger(a, b), 0, 0), atLeast(larger(a, number(0.125)), 0, 0);
    runAndCompare(session(), ENTRY(maxima), std::int64_t{37}, Given(a), Given(b), most, atLeast);
  }
}

void checkUnary(std::int64_t rows, const Array &x, const Array &positive) {
  Expected exp(apply(x, std::exp), tolerance, 0), log(apply(positive, std::log), tolerance, one),
      sqrt(apply(positive, std::sqrt), tolerance, 0), tanh(apply(x, std::tanh), tolerance, 0.1),
      sigmoid(apply(x, testing::sigmoid), tolerance, 0.1), relu(larger(x, number(0)), 0, 0),
      gelu(apply(x, testing::gelu), tolerance, one), geluTanh(apply(x, testing::geluTanh), tolerance, 0.1),
      silu(apply(x, testing::silu), tolerance, one), dropout(x, 0, 0);
  runAndCompare(session(), ENTRY(unary), rows, Given(x), Given(positive), exp, log, sqrt, tanh, sigmoid, relu, gelu,
                geluTanh, silu, dropout);
}

TEST(Pointwise, Unary) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    checkUnary(e.rows, random({e.rows, 19}, -10, 10), random({e.rows, 19}, 1e-3, 30));
  }
}

// The ends of the polynomials' ranges. exp becomes 0 at f32's smallest normal number at the latest.
TEST(Pointwise, UnaryAtTheEdges) {
  const std::vector<double> edges = {0,  -0.0, 1e-30f, -1e-30f, 1e-8f, -1e-8f, 0.4999f, 0.5, -0.5, 1,
                                     -1, 9,    -9,     20,      -20,   50,     -50,     80,  -80};
  const std::vector<double> positive = {1e-37f,     1e-30f, 1e-10f, 0.5, 0.70710677f, 0.9999999f, 1,     1.0000001f,
                                        1.4142135f, 2,      3,      10,  1e3,         1e10f,      1e20f, 1e30f,
                                        3e38f,      0.1f,   7};
  checkUnary(1, {{1, 19}, edges}, {{1, 19}, positive});
}

// For very large arguments the limits hold and nothing is NaN, except for a NaN argument, which stays NaN.
TEST(Pointwise, UnaryFarOutside) {
  std::vector<float> x(19, 0.0f), positive(19, 1.0f);
  x[0] = 1e4f, x[1] = -1e4f, x[2] = 3e38f, x[3] = -3e38f; // doubling these overflows
  x[4] = std::numeric_limits<float>::quiet_NaN();
  Input<float> given(x), above(positive);
  Output<float> exp(19), log(19), sqrt(19), tanh(19), sigmoid(19), relu(19), gelu(19), geluTanh(19), silu(19),
      dropout(19);
  session().run(ENTRY(unary), std::int64_t{1}, given, above, exp, log, sqrt, tanh, sigmoid, relu, gelu, geluTanh, silu,
                dropout);
  for (int i : {0, 2}) {
    SCOPED_TRACE(x[i]);
    EXPECT_GT(exp.values()[i], 1e38f);
    EXPECT_EQ(tanh.values()[i], 1);
    EXPECT_EQ(sigmoid.values()[i], 1);
    EXPECT_EQ(gelu.values()[i], x[i]);
    EXPECT_EQ(geluTanh.values()[i], x[i]);
    EXPECT_EQ(silu.values()[i], x[i]);
  }
  for (int i : {1, 3}) {
    SCOPED_TRACE(x[i]);
    EXPECT_NEAR(exp.values()[i], 0, 2e-38);
    EXPECT_EQ(tanh.values()[i], -1);
    EXPECT_NEAR(sigmoid.values()[i], 0, 2e-38);
    EXPECT_EQ(relu.values()[i], 0);
    EXPECT_NEAR(gelu.values()[i], 0, 1e-30);
    EXPECT_NEAR(geluTanh.values()[i], 0, 1e-30);
    EXPECT_NEAR(silu.values()[i], 0, 1); // -3e38 divided by infinity or by the largest number
  }
  const std::pair<const char *, Output<float> *> kept[] = {{"exp", &exp},   {"tanh", &tanh}, {"sigmoid", &sigmoid},
                                                           {"relu", &relu}, {"gelu", &gelu}, {"gelu_tanh", &geluTanh},
                                                           {"silu", &silu}};
  for (auto [name, output] : kept)
    EXPECT_TRUE(std::isnan(output->values()[4])) << name;
}

TEST(Pointwise, Broadcast) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array a = random({e.batch, e.rows, 19}), last = random({19}), column = random({e.rows, 1}), row = random({1, 19}),
          batch = random({e.batch, 1, 1}, 0.5, 2), one = random({});
    Expected plusLast(plus(a, last), tolerance, 0), columnMinus(minus(column, a), tolerance, 0),
        timesRow(times(a, row), tolerance, 0), overBatch(over(a, batch), tolerance, 0), most(larger(one, a), 0, 0),
        outer(times(column, row), tolerance, 0), both(plus(batch, last), tolerance, 0);
    runAndCompare(session(), ENTRY(broadcast), e.rows, e.batch, Given(a), Given(last), Given(column), Given(row),
                  Given(batch), Given(one), plusLast, columnMinus, timesRow, overBatch, most, outer, both);
  }
}

TEST(Pointwise, Numbers) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows, 19}, 0.1, 4);
    Array steps = generate({1, 19}, [](const Index &i) { return static_cast<double>(i[1]); });
    Expected a(plus(x, number(1.5)), tolerance, 0), b(minus(number(2), x), tolerance, 0),
        c(times(x, number(0.25)), tolerance, 0), d(over(number(3), x), tolerance, 0),
        f(over(x, number(3)), tolerance, 0), g(larger(x, number(0.125)), 0, 0), h(times(x, steps), tolerance, 0);
    runAndCompare(session(), ENTRY(numbers), e.rows, Given(x), a, b, c, d, f, g, h);
  }
}

TEST(Pointwise, Integers) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array a = randomIntegers({e.rows, 19}, -40000, 40000), b = randomIntegers({e.rows, 19}, -40000, 40000);
    ExpectedIntegers sum(plus(a, b)), difference(minus(a, b)), product(times(a, b)), most(larger(a, b)),
        seven(plus(a, number(7)));
    runAndCompare(session(), ENTRY(integers), e.rows, GivenIntegers(a), GivenIntegers(b), sum, difference, product,
                  most, seven);
  }
}

TEST(Pointwise, Choice) {
  auto isLess = [](double x, double y) { return double(x < y); };
  auto where = [](const Array &condition, const Array &x, const Array &y) {
    return generate(condition.shape, [&](const Index &at) { return condition.at(at) ? x.at(at) : y.at(at); });
  };
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array a = random({e.rows, 19}), b = random({e.rows, 19}), column = random({e.rows, 1});
    Array i = randomIntegers({e.rows, 19}, -5, 5), j = randomIntegers({e.rows, 19}, -5, 5);
    a.values[0] = NAN; // not less than b's element, and not selected where the column is negative
    b.values[1] = NAN; // selected, since nothing is less
    column.values[0] = -1;
    Array zeros = generate({e.rows, 19}, [](const Index &) { return 0; }), wide = plus(zeros, column);
    Expected less(where(broadcast(a, b, isLess), a, b), 0, 0),
        negative(where(broadcast(wide, zeros, isLess), plus(zeros, number(1.5)), a), 0, 0), empty(zeros, 0, 0),
        expanded(generate({e.batch, e.rows, 19}, [&](const Index &at) { return column.values[at[1]]; }), 0, 0);
    ExpectedIntegers whole(where(broadcast(i, j, isLess), i, plus(zeros, number(7))));
    runAndCompare(session(), ENTRY(choice), e.rows, e.batch, Given(a), Given(b), Given(column), GivenIntegers(i),
                  GivenIntegers(j), less, negative, whole, expanded, empty);
  }
}

TEST(Pointwise, Chain) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows, 19}), y = random({e.rows, 19});
    Array z = apply(plus(times(x, y), number(0.5)), std::tanh);
    Array result = plus(times(apply(minus(z, x), testing::gelu), z), apply(times(larger(y, z), number(-1)), std::exp));
    Expected expected(result, sumTolerance, one);
    runAndCompare(session(), ENTRY(chain), e.rows, Given(x), Given(y), expected);
  }
}

TEST(Pointwise, Small) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array v = random({e.rows}), n = random({});
    Expected scaled(times(apply(v, testing::silu), n), tolerance, one),
        single(plus(apply(n, testing::sigmoid), number(1)), tolerance, one);
    runAndCompare(session(), ENTRY(small), e.rows, Given(v), Given(n), scaled, single);
  }
}

} // namespace
} // namespace kiln::testing
