// SPDX-License-Identifier: Apache-2.0
//
// Trains the forecaster on random series: forecaster_trainer [--steps N] [--seed N] [--threads N] [--out FILE]. Fails
// unless the final forecasts are much better than the last known value.
#include "forecaster_train.hpp"
#include "series.h"
#include "support/trainer.h"

#include <cstdio>

namespace {

/// Returns the pinball loss of the last known value, as all three quantiles, on the scale of each series.
double naive_loss(const Batch &batch) {
  double sum = 0;
  for (int i = 0; i < Batch::count; ++i) {
    double mean = 0, square = 0, last = 0;
    int count = 0;
    for (int t = 0; t < Batch::length; ++t)
      if (batch.known[i * Batch::length + t]) {
        last = batch.values[i * Batch::length + t];
        mean += last, square += last * last, ++count;
      }
    mean /= count;
    const double deviation = std::sqrt(square / count - mean * mean + 1e-5);
    for (int t = 0; t < Batch::horizon; ++t) {
      const double above = (batch.future[i * Batch::horizon + t] - last) / deviation;
      for (double level : {0.1, 0.5, 0.9})
        sum += std::max(level * above, (level - 1) * above) / 3;
    }
  }
  return sum / (Batch::count * Batch::horizon);
}

} // namespace

int main(int argc, char **argv) try {
  support::TrainingPlan plan{.program = "forecaster_trainer",
                             .out = "forecaster.safetensors",
                             .data = "",
                             .steps = 400,
                             .rate = 2e-3,
                             .unit = "pinball loss",
                             .things = "series",
                             .per_step = Batch::count,
                             .warm_up = 20};
  support::read_options(argc, argv, plan);
  support::Session session(FORECASTER_TRAIN_TRAIN_ARENA_BYTES(plan.threads)),
      measuring(FORECASTER_TRAIN_EVALUATE_ARENA_BYTES(plan.threads));
  forecaster_train::Model model;
  kiln_pool_t *pool;
  session.check(forecaster_train_pool_create(static_cast<std::uint32_t>(plan.threads), &pool, &session.error));
  session.call.executor = measuring.call.executor = forecaster_train_pool_executor(pool);

  const Batch held_out = draw_batch(random_of_step(0, -1));
  double last = 0;
  auto measure = [&] {
    float loss;
    measuring.check(forecaster_train_evaluate(model.get(), &measuring.call, Batch::count, Batch::patches,
                                              held_out.values.data(), held_out.known.data(), held_out.future.data(),
                                              &loss));
    return last = static_cast<double>(loss);
  };
  auto begin = [&] { session.check(model.initialise_weights(static_cast<std::uint64_t>(plan.seed), &session.error)); };
  auto step = [&](const kiln_training_t &training, float rate, random_t random) {
    const Batch batch = draw_batch(random);
    float loss, norm;
    session.check(forecaster_train_train(model.get(), &session.call, Batch::count, Batch::patches, batch.values.data(),
                                         batch.known.data(), batch.future.data(), &rate, &training.step, &loss, &norm));
    return static_cast<double>(loss);
  };
  support::train(model, session, plan, begin, step, measure);
  forecaster_train_pool_destroy(pool);
  const double naive = naive_loss(held_out);
  std::printf("held-out series: pinball loss %.4f; %.4f if the last known value stayed\n", last, naive);
  return plan.steps < 300 || last < naive / 2 ? 0 : 1;
} catch (const std::exception &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
