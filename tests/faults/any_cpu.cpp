// SPDX-License-Identifier: Apache-2.0
// Prints which target of the library this CPU runs, if its results equal those of a loop in f64; otherwise the status
// text.
#include "pair.h"
#include "weights.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

using namespace kiln::testing;

namespace {

constexpr int rows = 13, inputs = 6, codes = 10;

/// Returns the largest difference between the library's tanh results and tanh(up(x)).
double distance(const std::vector<Weight> &weights, const float *x, const float *given) {
  const auto valuesOf = [&](const std::string &name) -> const std::vector<float> & {
    for (const Weight &weight : weights)
      if (weight.name == name)
        return weight.values;
    std::abort();
  };
  const std::vector<float> &weight = valuesOf("up.weight"), &bias = valuesOf("up.bias");
  double worst = 0;
  for (int row = 0; row < rows; ++row)
    for (int n = 0; n < codes; ++n) {
      double sum = bias[static_cast<std::size_t>(n)];
      for (int k = 0; k < inputs; ++k)
        sum += double{x[row * inputs + k]} * weight[static_cast<std::size_t>(n * inputs + k)];
      const double error = std::fabs(std::tanh(sum) - given[row * codes + n]);
      worst = error <= worst ? worst : error; // NaN propagates
    }
  return worst;
}

} // namespace

int main() {
  pair_t *model = nullptr;
  kiln_error_t error;
  if (const kiln_status_t status = pair_create(nullptr, &model, &error); status == KILN_UNSUPPORTED_CPU) {
    std::printf("unsupported: %s\n", error.message);
    return 0;
  }
#define KILN_TEST_WEIGHT(name, type, copies, ...) {name, copies, {__VA_ARGS__}},
  const std::vector<Weight> weights = counterWeights({PAIR_WEIGHTS(KILN_TEST_WEIGHT)});
  const WeightImage image(weights);
  alignas(KILN_ARENA_ALIGNMENT) static unsigned char arena[PAIR_ENCODE_ARENA_BYTES(1)];
  const kiln_call_t call{arena, sizeof arena, nullptr, &error};
  float x[rows * inputs], code[rows * codes];
  for (int i = 0; i < rows * inputs; ++i)
    x[i] = static_cast<float>(i * 7 % 23 - 11) / 8;
  if (!model || pair_bind_weights_from_memory(model, image.data(), image.size(), &error) ||
      pair_encode(model, &call, rows, x, code)) {
    std::printf("failed: %s\n", error.message);
    return 1;
  }
  const double worst = distance(weights, x, code);
  std::printf("%s, %s\n", pair_target(model), worst < 1e-6 ? "right" : "wrong");
  pair_destroy(model);
  return !(worst < 1e-6);
}
