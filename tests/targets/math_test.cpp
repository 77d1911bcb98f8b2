// SPDX-License-Identifier: Apache-2.0
//
// Compares compiled math functions with libm in f64: dense samples, and the special values. The bounds are those that
// targets/passes/ExpandMath.cpp states; for exp and log 2 ulp, which tests/ops/functions_test.cpp checks for
// operations, optionally over all numbers.
#include "Harness.h"
#include "KernelText.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace kiln::testing {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Function {
  const char *op;
  double (*reference)(double);
  double low, high;
  double relative, absolute; // an error is within either bound
  double growth = 0;         // growth of the relative error with the argument
  const char *attribute = "";
};

constexpr const char *nonpositive = "{kiln.nonpositive}", *nonnegative = "{kiln.nonnegative}",
                     *reducedAngle = "{kiln.reduced_angle}";
constexpr double subnormalUnit = 0x1p-149;

const Function functions[] = {
    {"exp", std::exp, -86.9, 88.7, 1.2e-7, 0},
    {"exp", std::exp, -110, -87, 1.2e-7, subnormalUnit},
    {"exp", std::exp, -1e-6, 1e-6, 1.2e-7, 0},
    {"exp", std::exp, -86.9, 0, 3e-7, 0, 1e-7, nonpositive},
    {"exp", std::exp, -1, 0, 3e-7, 0, 1e-7, nonpositive},
    {"exp2", std::exp2, -124.9, 127.9, 3e-7, 0},
    {"exp2", std::exp2, -124.9, 0, 3e-7, 0, 0, nonpositive},
    {"exp2", std::exp2, -1, 0, 3e-7, 0, 0, nonpositive},
    {"expm1", std::expm1, -20, 88.7, 2e-7, 0},
    {"expm1", std::expm1, -1e-6, 1e-6, 2e-7, 0},
    {"expm1", std::expm1, -1, 1, 2e-7, 0},
    {"log", std::log, 1.2e-38, 3e38, 1.2e-7, 0},
    {"log", std::log, 1e-42, 1.2e-38, 1.2e-7, 0},
    {"log", std::log, 0.4, 2.5, 1.2e-7, 0},
    {"log", std::log, 0.99, 1.01, 1.2e-7, 0},
    {"log1p", std::log1p, -0.9999, 1e4, 2e-7, 0},
    {"log1p", std::log1p, -1e-3, 1e-3, 2e-7, 0},
    {"tanh", std::tanh, -12, 12, 3.6e-7, 0},
    {"tanh", std::tanh, -1e-3, 1e-3, 3.6e-7, 0},
    {"erf", std::erf, -6, 6, 5e-7, 0},
    {"erf", std::erf, -1e-3, 1e-3, 5e-7, 0},
    {"erf", std::erf, 0, 6, 5e-7, 0, 0, nonnegative},
    {"erf", std::erf, 3, 4, 5e-7, 0, 0, nonnegative},
    {"sin", std::sin, -1e4, 1e4, 0, 1.3e-7},
    {"cos", std::cos, -1e4, 1e4, 0, 1.3e-7},
    {"sin", std::sin, 8000, 3e38, 0, 1.3e-7},
    {"cos", std::cos, -3e38, -8000, 0, 1.3e-7},
    {"sin", std::sin, -1, 1, 3e-7, 0},
    {"sin", std::sin, -0.7853981, 0.7853981, 3e-7, 1.3e-7, 0, reducedAngle},
    {"cos", std::cos, -0.7853981, 0.7853981, 3e-7, 1.3e-7, 0, reducedAngle},
};

std::string kernelText(const std::string &op, const std::string &attribute) {
  KernelText k({{1, 1 << 20}});
  std::string type = k.type({"s0"});
  Value x = k.argument(type);
  return k.finish(
      {k.one("p", {x}, type, {"a", "a"}, "%r = math." + op + " %x0 " + attribute + " : f32\nlinalg.yield %r : f32")});
}

class Math : public ::testing::TestWithParam<std::string> {};

/// Returns evenly spaced and geometrically spaced samples. The latter go from the lower end to the higher one where
/// both have one sign, else from each end that is not 0 to a millionth of it.
std::vector<double> sample(const Function &f, int64_t count) {
  std::vector<double> x(count);
  for (int64_t i = 0; i < count; ++i) {
    const double along = double(i) / double(count - 1);
    if (i % 2)
      x[i] = f.low + (f.high - f.low) * along;
    else if (f.low > 0 || f.high < 0)
      x[i] = f.low * std::pow(f.high / f.low, along);
    else
      x[i] = (f.high == 0 || (f.low < 0 && i % 4)) ? f.low * std::pow(1e-6, along) : f.high * std::pow(1e-6, along);
    x[i] = std::clamp(double(float(x[i])), double(float(f.low)), double(float(f.high)));
  }
  return x;
}

TEST(MathSamples, AreManyPoints) {
  for (const Function &f : functions) {
    std::vector<double> x = sample(f, 20001);
    std::sort(x.begin(), x.end());
    x.erase(std::unique(x.begin(), x.end()), x.end());
    EXPECT_GT(x.size(), 19000u) << f.op << " in [" << f.low << ", " << f.high << "]";
  }
}

TEST_P(Math, DenseSamples) {
  constexpr int64_t samples = 200003;
  for (const Function &f : functions) {
    SCOPED_TRACE(std::string(f.op) + " in [" + std::to_string(f.low) + ", " + std::to_string(f.high) + "]");
    Kernel kernel(kernelText(f.op, f.attribute), GetParam());
    Tensor x{{samples}, sample(f, samples)};
    Tensor y = kernel.run({samples}, {x})[0];
    double worst = 0, worstAt = 0;
    for (int64_t i = 0; i < samples; ++i) {
      double expected = f.reference(x.values[i]), error = std::abs(y.values[i] - expected);
      double relative = error / std::abs(expected) - f.growth * std::abs(x.values[i]);
      if (!(error <= f.absolute) && !(relative <= worst)) { // NaN is the worst
        worst = std::isnan(relative) ? infinity : relative;
        worstAt = x.values[i];
      }
    }
    RecordProperty(std::string(f.op) + "_relative", std::to_string(worst * 1e7) + "e-7");
    EXPECT_LE(worst, f.relative) << "at " << worstAt;
  }
}

TEST_P(Math, SpecialValues) {
  struct Case {
    const char *op;
    double x, expected;
    const char *attribute = "";
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Case cases[] = {
      {"exp", -infinity, 0},
      {"exp", -1e30, 0},
      {"exp", -3e38, 0},
      {"exp", infinity, infinity},
      {"exp", 1000, infinity},
      {"exp", 0, 1},
      {"exp", nan, nan},
      {"exp", -infinity, 0, nonpositive},
      {"exp", -1e30, 0, nonpositive},
      {"exp", -3e38, 0, nonpositive},
      {"exp", 0, 1, nonpositive},
      {"exp", -87.5, 9.982350930569248e-39},
      {"exp", -103.9, 1.401298464324817e-45},
      {"exp", -104.1, 0},
      {"exp", 88.73, infinity},
      {"exp", nan, nan, nonpositive},
      {"exp2", -infinity, 0},
      {"exp2", 200, infinity},
      {"exp2", 10, 1024},
      {"exp2", nan, nan},
      {"exp2", 0, 1, nonpositive},
      {"exp2", -10, 0.0009765625, nonpositive},
      {"exp2", -126, 0, nonpositive},
      {"exp2", -3e38, 0, nonpositive},
      {"exp2", -infinity, 0, nonpositive},
      {"exp2", nan, nan, nonpositive},
      {"expm1", -infinity, -1},
      {"expm1", -30, -1},
      {"expm1", 0, 0},
      {"expm1", 88.5, 2.7230878250681117e38},
      {"expm1", 88.73, infinity},
      {"expm1", infinity, infinity},
      {"expm1", nan, nan},
      {"log", 0, -infinity},
      {"log", 1, 0},
      {"log", infinity, infinity},
      {"log", -1, nan},
      {"log", 1.401298464324817e-45, -103.27892990343184},
      {"log", nan, nan},
      {"log1p", 0, 0},
      {"log1p", -1, -infinity},
      {"log1p", infinity, infinity},
      {"log1p", nan, nan},
      {"tanh", infinity, 1},
      {"tanh", -infinity, -1},
      {"tanh", 0, 0},
      {"tanh", nan, nan},
      {"erf", infinity, 1},
      {"erf", -infinity, -1},
      {"erf", 0, 0},
      {"erf", nan, nan},
      {"erf", infinity, 1, nonnegative},
      {"erf", 1e30, 1, nonnegative},
      {"erf", 3.61, 1, nonnegative},
      {"erf", 0, 0, nonnegative},
      {"erf", nan, nan, nonnegative},
      {"sin", 0, 0},
      {"cos", 0, 1},
      {"sin", nan, nan},
      {"sin", infinity, nan},
      {"cos", -infinity, nan},
      {"cos", 0, 1, reducedAngle},
  };
  for (const Case &c : cases) {
    SCOPED_TRACE(std::string(c.op) + "(" + std::to_string(c.x) + ") " + c.attribute);
    Kernel kernel(kernelText(c.op, c.attribute), GetParam());
    Tensor x = Tensor::zeros({19});
    for (double &value : x.values)
      value = c.x;
    Tensor y = kernel.run({19}, {x})[0];
    for (double value : y.values) {
      if (std::isnan(c.expected))
        ASSERT_TRUE(std::isnan(value)) << value;
      else if (std::isinf(c.expected) || c.expected == 0)
        ASSERT_EQ(value, c.expected);
      else
        ASSERT_NEAR(value, c.expected, c.expected == 1 ? 0 : 2e-7 * std::abs(c.expected) + subnormalUnit / 2);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Math, ::testing::ValuesIn(runnableTargets()),
                         [](const auto &info) { return "v" + info.param.substr(8); });

} // namespace
} // namespace kiln::testing
