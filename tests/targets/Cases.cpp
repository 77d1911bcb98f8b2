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

std::vector<ScheduleConfig> configsToTry(const SearchSpace &space, int more, const std::string &target) {
  std::vector<ScheduleConfig> configs{defaultConfigOf(space)};
  auto add = [&](const ScheduleConfig &config) {
    bool isNew = obeysRules(space, config) && std::find(configs.begin(), configs.end(), config) == configs.end();
    if (isNew)
      configs.push_back(config);
    return isNew;
  };
  for (const TuningParameter &parameter : space)
    for (int64_t value : {parameter.values.front(), parameter.values.back()}) {
      ScheduleConfig config = defaultConfigOf(space);
      config[parameter.key] = value;
      add(config);
    }
  for (int attempt = 0; more > 0 && attempt < 10000; ++attempt) {
    ScheduleConfig config;
    for (const TuningParameter &parameter : space)
      config[parameter.key] = parameter.values[generator()() % parameter.values.size()];
    more -= add(config);
  }
  std::vector<ScheduleConfig> tried{configs.front()};
  for (size_t i = 1; i < configs.size(); ++i)
    if (hasTurn(target, i))
      tried.push_back(configs[i]);
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
