// SPDX-License-Identifier: Apache-2.0
#include "ops.h"

#include "../seed.h"
#include "golden.h"

#include <cstdio>
#include <cstdlib>
#include <limits>

namespace kiln::testing {

unsigned seed() { return testSeed(); }

std::mt19937 &generator() {
  static std::mt19937 engine(seed());
  return engine;
}

Array random(const Shape &shape, double low, double high) {
  std::uniform_real_distribution<double> values(low, high);
  return generate(shape, [&](const Index &) { return static_cast<float>(values(generator())); });
}

Array randomIntegers(const Shape &shape, std::int64_t low, std::int64_t high) {
  std::uniform_int_distribution<std::int64_t> values(low, high - 1);
  return generate(shape, [&](const Index &) { return static_cast<double>(values(generator())); });
}

Array randomExtremes(const Shape &shape, double usual) {
  using Limits = std::numeric_limits<float>;
  const double sizes[] = {Limits::quiet_NaN(), Limits::infinity(), 0, Limits::denorm_min(), 1, Limits::max()};
  std::bernoulli_distribution isUsual(0.8), isNegative(0.5);
  std::uniform_int_distribution<std::size_t> any(0, std::size(sizes) - 1);
  return generate(shape, [&](const Index &) {
    const double size = isUsual(generator()) ? usual : sizes[any(generator())];
    return isNegative(generator()) && size != usual ? std::copysign(size, -1.0) : size;
  });
}

Array weightOf(const std::vector<WeightShape> &weights, const std::string &name) {
  for (const Weight &weight : counterWeights(weights))
    if (weight.name == name)
      return {weight.shape, {weight.values.begin(), weight.values.end()}};
  stop("the library has no weight " + name);
}

const std::vector<Extents> &allExtents() {
  static const std::vector<Extents> extents = [] {
    const std::int64_t rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 23, 24, 25, 31, 32, 33, 36, 37};
    const std::int64_t others[] = {41, 1, 40, 2, 33, 17, 3, 16, 8, 32, 7};
    std::vector<Extents> list = {{1, 1, 1}, {3, 37, 41}, {1, 37, 1}, {2, 1, 41}};
    std::size_t i = 0;
    for (std::int64_t count : rows) {
      list.push_back({1 + static_cast<std::int64_t>(i % 3), count, others[i % std::size(others)]});
      ++i;
    }
    return list;
  }();
  return extents;
}

void Expected::compare(std::size_t position) const {
  double least = floor;
  if (floor == largest)
    for (double value : reference.values)
      if (std::isfinite(value))
        least = std::max(least, std::fabs(value));
  std::size_t wrong = 0, first = 0;
  for (std::size_t i = 0; i < reference.values.size(); ++i) {
    const double want = reference.values[i], got = values()[i];
    const bool isRight = std::isnan(want)      ? std::isnan(got)
                         : std::isfinite(want) ? std::fabs(got - want) <= tolerance * (std::fabs(want) + least)
                                               : got == want;
    if (!isRight && wrong++ == 0)
      first = i;
  }
  EXPECT_EQ(wrong, 0u) << "of " << reference.values.size() << " elements of argument " << position
                       << " are wrong; element " << first << " is " << values()[first] << ", not "
                       << reference.values[first];
}

void ExpectedIntegers::compare(std::size_t position) const {
  for (std::size_t i = 0; i < reference.values.size(); ++i)
    ASSERT_EQ(values()[i], static_cast<std::int32_t>(reference.values[i]))
        << "element " << i << " of argument " << position;
}

} // namespace kiln::testing
