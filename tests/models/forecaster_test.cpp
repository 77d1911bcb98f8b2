// SPDX-License-Identifier: Apache-2.0
// Forecasts, gradients and training steps of the forecaster with the counter's weights compared with PyTorch in f64.
#include "golden.h"
#include "session.h"
#include "support.h"
#include "tested_forecaster.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <numeric>
#include <utility>

namespace kiln::testing {
namespace {

/// The tolerances relative to the f64 oracle: at most three times the measured errors.
constexpr double forecastTolerance = 6e-7, gradientTolerance = 2.8e-6, lossTolerance = 1e-6;

constexpr std::int64_t horizon = 24, quantiles = 3;

Library<tested_forecaster_t> library() { return KILN_TEST_LIBRARY(tested_forecaster, TESTED_FORECASTER_WEIGHTS); }

const Golden &golden() {
  static const Golden only("forecaster.safetensors");
  return only;
}

/// The series of oracle/forecaster.py: noise about a rising line. Unknown values are NaN: about an eighth, and the
/// older half of odd series, so that whole patches are masked.
struct Series {
  std::vector<float> values, future;
  std::vector<std::uint8_t> known;

  Series(std::int64_t batch, std::int64_t patches) {
    const std::int64_t length = 8 * patches + 8;
    auto number = [](const char *name, std::int64_t i, std::int64_t t, std::int64_t series) {
      return static_cast<float>(2 * double{counter_uniform(name, i)} + static_cast<double>(t) / 32 +
                                4 * double{counter_uniform("level", series)});
    };
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t t = 0; t < length; ++t) {
        const std::int64_t i = b * length + t;
        known.push_back(counter_token("known", i, 8) != 0 && (b % 2 == 0 || t >= length / 2));
        values.push_back(known.back() ? number("values", i, t, b) : std::numeric_limits<float>::quiet_NaN());
      }
      for (std::int64_t t = 0; t < horizon; ++t)
        future.push_back(number("future", b * horizon + t, length + t, b));
    }
  }
};

TEST(Forecaster, ForecastsAsPyTorch) {
  Session<tested_forecaster_t> session(library());
  for (auto [batch, patches] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {5, 7}, {3, 32}, {64, 2}}) {
    const std::string size = "B" + std::to_string(batch) + "P" + std::to_string(patches);
    SCOPED_TRACE(size);
    const Series series(batch, patches);
    Output<float> forecast(batch * horizon * quantiles);
    session.run(tested_forecaster_forecast, batch, patches, Input(series.values), Input(series.known), forecast);
    EXPECT_LE(golden().error(size + ".quantiles", forecast.values()), forecastTolerance);
  }
}

/// The parameters in the order of the results of the entry "gradients".
const char *const parameters[] = {"patches.weight",
                                  "patches.bias",
                                  "positions.weight",
                                  "blocks.{}.norm1.weight",
                                  "blocks.{}.norm1.bias",
                                  "blocks.{}.self_attn.q_proj.weight",
                                  "blocks.{}.self_attn.q_proj.bias",
                                  "blocks.{}.self_attn.k_proj.weight",
                                  "blocks.{}.self_attn.k_proj.bias",
                                  "blocks.{}.self_attn.v_proj.weight",
                                  "blocks.{}.self_attn.v_proj.bias",
                                  "blocks.{}.self_attn.out_proj.weight",
                                  "blocks.{}.self_attn.out_proj.bias",
                                  "blocks.{}.norm2.weight",
                                  "blocks.{}.norm2.bias",
                                  "blocks.{}.mlp.fc1.weight",
                                  "blocks.{}.mlp.fc1.bias",
                                  "blocks.{}.mlp.fc2.weight",
                                  "blocks.{}.mlp.fc2.bias",
                                  "norm.weight",
                                  "norm.bias",
                                  "head.weight",
                                  "head.bias"};

/// A gradient, of all layers of a stack together.
struct Gradient {
  WeightShape of;
  std::size_t each = 1; // elements of a layer
  Output<float> values;

  explicit Gradient(const WeightShape &weight)
      : of(weight), each(static_cast<std::size_t>(std::accumulate(weight.shape.begin(), weight.shape.end(),
                                                                  std::int64_t{1}, std::multiplies<>()))),
        values(each * static_cast<std::size_t>(weight.copies)) {}
};

void expectGradient(const Gradient &gradient) {
  for (std::int64_t copy = 0; copy < gradient.of.copies; ++copy) {
    std::string name = gradient.of.name;
    if (const std::size_t hole = name.find("{}"); hole != name.npos)
      name.replace(hole, 2, std::to_string(copy));
    SCOPED_TRACE(name);
    const std::span<const float> own =
        gradient.values.values().subspan(static_cast<std::size_t>(copy) * gradient.each, gradient.each);
    if (!name.ends_with("k_proj.bias")) {
      EXPECT_LE(golden().error("gradient." + name, own), gradientTolerance);
      continue;
    }
    for (float element : own) // a bias of keys adds the same number to all scores of a query
      EXPECT_LE(std::fabs(element), 1e-8f);
  }
}

TEST(Forecaster, HasTheGradientsOfPyTorch) {
  constexpr std::int64_t batch = 8, patches = 15;
  Session<tested_forecaster_t> session(library());
  const std::vector<WeightShape> weights = library().weights;
  ASSERT_EQ(weights.size(), std::size(parameters));
  std::deque<Gradient> gradients;
  for (const std::string name : parameters)
    gradients.emplace_back(*std::ranges::find(weights, name, &WeightShape::name));
  const Series series(batch, patches);
  Output<float> loss(1);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    session.runWith({1, 3}, tested_forecaster_gradients, batch, patches, Input(series.values), Input(series.known),
                    Input(series.future), loss, gradients[I].values...);
  }(std::make_index_sequence<std::size(parameters)>());
  EXPECT_NEAR(loss.values()[0], golden().floats("loss")[0], 1e-6);
  for (const Gradient &gradient : gradients)
    expectGradient(gradient);
}

TEST(Forecaster, LearnsAsPyTorch) {
  constexpr std::int64_t batch = 8, patches = 15;
  Session<tested_forecaster_t> session(library());
  Conversation<tested_forecaster_t> conversation(session, 2, TESTED_FORECASTER_TRAINING_BYTES,
                                                 TESTED_FORECASTER_TRAIN_ARENA_BYTES(2));
  const Series series(batch, patches);
  const std::vector<float> losses = golden().floats("losses");
  ASSERT_EQ(losses.size(), 5u);
  for (std::size_t i = 0; i < losses.size(); ++i) {
    Output<float> loss(1), norm(1);
    conversation.run(tested_forecaster_train, batch, patches, Input(series.values), Input(series.known),
                     Input(series.future), Input(std::vector<float>{2e-3f}),
                     Input(std::vector<std::int32_t>{static_cast<std::int32_t>(i + 1)}), loss, norm);
    EXPECT_NEAR(loss.values()[0], losses[i], lossTolerance) << "step " << i + 1;
    EXPECT_GT(norm.values()[0], 0.1) << "nothing is clipped";
  }
}

} // namespace
} // namespace kiln::testing
