// SPDX-License-Identifier: Apache-2.0
// A GRU that is fed silence forgets what it heard: its outputs are those of a loop in f64, no state is ever below
// 2^-100 except 0, and in the end all are 0. Subnormal states would slow down every later call.
#include "../seed.h"
#include "session.h"
#include "silence_v2.h"
#include "silence_v3.h"

#include <cmath>
#include <random>

namespace kiln::testing {
namespace {

constexpr std::size_t block = 256, units = 16;

/// Random weights. Without biases, except those of the update gate, the state decays slowly, by about 0.95 each sample,
/// and has no other limit than 0: the recurrent weights are too small.
std::vector<Weight> drawWeights() {
  std::mt19937 random(testSeed());
  auto drawn = [&](const char *name, std::vector<std::int64_t> shape, std::size_t count, float most) {
    std::uniform_real_distribution<float> values(-most, most);
    Weight weight{name, std::move(shape), std::vector<float>(count)};
    for (float &value : weight.values)
      value = values(random);
    return weight;
  };
  std::vector<Weight> weights{drawn("gru.weight_ih_l0", {3 * units, 1}, 3 * units, 0.5f),
                              drawn("gru.weight_hh_l0", {3 * units, units}, 3 * units * units, 0.3f),
                              drawn("gru.bias_ih_l0", {3 * units}, 3 * units, 0),
                              drawn("gru.bias_hh_l0", {3 * units}, 3 * units, 0),
                              drawn("out.weight", {1, units}, units, 0.5f)};
  std::fill_n(weights[2].values.begin() + units, units, 3.0f);
  return weights;
}

/// The model in f64.
class Loop {
public:
  explicit Loop(const std::vector<Weight> &weights) : weights(weights) {}

  double next(double x) {
    const double (&old)[units] = state;
    double now[units], driven = 0;
    auto gate = [&](std::size_t row, double factor) {
      double sum = 0;
      for (std::size_t k = 0; k < units; ++k)
        sum += weights[1].values[row * units + k] * old[k];
      return weights[0].values[row] * x + weights[2].values[row] + factor * sum;
    };
    auto logistic = [](double y) { return 1 / (1 + std::exp(-y)); };
    for (std::size_t i = 0; i < units; ++i) {
      const double reset = logistic(gate(i, 1)), update = logistic(gate(units + i, 1));
      now[i] = (1 - update) * std::tanh(gate(2 * units + i, reset)) + update * old[i];
      driven += weights[4].values[i] * now[i];
    }
    std::copy(now, now + units, state);
    return driven;
  }

private:
  const std::vector<Weight> &weights;
  double state[units] = {};
};

template <class Handle> bool runsHere(const Library<Handle> &library) {
  Handle *model = nullptr;
  const kiln_status_t status = library.create(nullptr, &model, nullptr);
  library.destroy(model);
  return status != KILN_UNSUPPORTED_CPU;
}

/// Plays a tone of two blocks, then 40 blocks of silence.
template <class Handle, class Play>
void expectForgotten(const Library<Handle> &library, Play play, std::size_t stateBytes, std::size_t arenaBytes) {
  if (!runsHere(library))
    GTEST_SKIP() << "this CPU does not support " << library.name;
  const std::vector<Weight> weights = drawWeights();
  Session<Handle> session(library, weights);
  Conversation<Handle> conversation(session, 1, stateBytes, arenaBytes);
  Loop loop(weights);
  bool wasQuiet = false;
  for (int number = 0; number < 42; ++number) {
    SCOPED_TRACE("block " + std::to_string(number));
    std::vector<float> clean(block);
    for (std::size_t i = 0; number < 2 && i < block; ++i)
      clean[i] = std::sin(0.1f * static_cast<float>(number * block + i));
    Output<float> driven(block);
    conversation.run(play, static_cast<std::int64_t>(block), Input(clean), driven);
    double worst = 0, largest = 0x1p-90; // below, the loop goes on and the library has flushed
    for (std::size_t i = 0; i < block; ++i) {
      const double expected = loop.next(clean[i]);
      worst = std::fmax(worst, std::fabs(driven.values()[i] - expected));
      largest = std::fmax(largest, std::fabs(expected));
    }
    EXPECT_LE(worst, 2e-3 * largest); // errors add up over thousands of samples

    const std::vector<unsigned char> states = conversation.states();
    std::size_t zeros = 0;
    for (std::size_t i = 0; i < units; ++i) { // the only state is the last 64 bytes
      float state;
      std::memcpy(&state, &states[states.size() - (units - i) * sizeof state], sizeof state);
      zeros += state == 0;
      EXPECT_TRUE(state == 0 || std::fabs(state) >= 0x1p-100f) << i << ": " << state;
    }
    EXPECT_TRUE(!wasQuiet || zeros == units) << "a state came back";
    wasQuiet = zeros == units;
  }
  EXPECT_TRUE(wasQuiet) << "the states have not decayed";
}

#define SILENCE_TEST(name, NAME)                                                                                       \
  TEST(Silence, IsForgotten_##name) {                                                                                  \
    expectForgotten(KILN_TEST_LIBRARY(name, NAME##_WEIGHTS), name##_play, NAME##_STATE_BYTES,                          \
                    NAME##_PLAY_ARENA_BYTES(1));                                                                       \
  }
SILENCE_TEST(silence_v2, SILENCE_V2)
SILENCE_TEST(silence_v3, SILENCE_V3)

} // namespace
} // namespace kiln::testing
