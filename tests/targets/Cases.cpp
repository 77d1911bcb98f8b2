// SPDX-License-Identifier: Apache-2.0
// Test cases and comparisons of kernel tests: tensors, random numbers, schedule configurations.
#include "Harness.h"

#include "../seed.h"
#include "compiler/schedule/SearchSpace.h"
#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <random>

namespace kiln::testing {

double &Tensor::at(std::initializer_list<int64_t> index) {
  int64_t flat = 0;
  size_t i = 0;
  for (int64_t position : index)
    flat = flat * shape[i++] + position;
  return values[flat];
}

Tensor Tensor::zeros(std::vector<int64_t> shape) {
  int64_t n = 1;
  for (int64_t extent : shape)
    n *= extent;
  return {std::move(shape), std::vector<double>(n, 0.0)};
}

static std::mt19937 &generator() {
  static std::mt19937 engine(testSeed());
  return engine;
}

Tensor randomTensor(std::vector<int64_t> shape, double scale) {
  std::normal_distribution<float> distribution(0.0f, float(scale));
  Tensor result = Tensor::zeros(std::move(shape));
  for (double &value : result.values)
    value = distribution(generator());
  return result;
}

Tensor randomIntegers(std::vector<int64_t> shape, int low, int high) {
  std::uniform_int_distribution<int> distribution(low, high - 1);
  Tensor result = Tensor::zeros(std::move(shape));
  for (double &value : result.values)
    value = distribution(generator());
  return result;
}

bool hasTurn(const std::string &target, size_t number) {
  static const std::vector<std::string> targets = runnableTargets();
  static const bool isAll = std::getenv("KILN_TEST_ALL") != nullptr;
  static const char *given = std::getenv("KILN_TEST_TURNS");
  static const unsigned long turns = given ? std::max(1ul, std::strtoul(given, nullptr, 10)) : 1;
  static const unsigned long turn = testSeed() % turns;
  return isAll || (targets[number % targets.size()] == target && number / targets.size() % turns == turn);
}

std::vector<SchedulePoint> pointsToTry(const SearchSpace &space, int more, const std::string &target) {
  std::vector<SchedulePoint> points{presets(space)};
  auto add = [&](const SchedulePoint &point) {
    bool isNew = obeysRules(space, point) && std::find(points.begin(), points.end(), point) == points.end();
    if (isNew)
      points.push_back(point);
    return isNew;
  };
  for (const TuningParameter &parameter : space)
    for (int64_t value : {parameter.values.front(), parameter.values.back()}) {
      SchedulePoint point = presets(space);
      point[parameter.key] = value;
      add(point);
    }
  for (int attempt = 0; more > 0 && attempt < 10000; ++attempt) {
    SchedulePoint point;
    for (const TuningParameter &parameter : space)
      point[parameter.key] = parameter.values[generator()() % parameter.values.size()];
    more -= add(point);
  }
  std::vector<SchedulePoint> tried{points.front()};
  for (size_t i = 1; i < points.size(); ++i)
    if (hasTurn(target, i))
      tried.push_back(points[i]);
  return tried;
}

void expectClose(const Tensor &actual, const Tensor &expected, double tolerance, bool elementwise, double leastScale) {
  ASSERT_EQ(actual.shape, expected.shape);
  double largest = leastScale;
  for (double value : expected.values)
    largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < expected.values.size(); ++i) {
    double a = actual.values[i], e = expected.values[i], scale = elementwise ? std::abs(e) : largest;
    ASSERT_TRUE((std::isnan(a) && std::isnan(e)) || a == e || std::abs(a - e) <= tolerance * scale)
        << "element " << i << " of " << expected.values.size() << ": got " << a << ", expected " << e;
  }
}

} // namespace kiln::testing
