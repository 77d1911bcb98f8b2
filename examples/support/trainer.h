// SPDX-License-Identifier: Apache-2.0
//
// The loop of a training program: one command that prints its progress, can be stopped at any time and resumes when it
// is run again, and plots its losses. OUT.training, OUT.losses and OUT.svg are written next to the weights OUT.
#pragma once

#include "first_weights.h"
#include "loss_curve.h"
#include "session.h"

#include <kiln/learning_rate.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>

namespace support {

struct TrainingPlan {
  const char *program;
  std::string out, data; // path of the weights; path of the data
  int steps, threads = 2, seed = 1;
  double rate;               // the maximum
  const char *unit, *things; // of the losses; of the items of a step: "images"
  int per_step;              // number of items per step
  double seconds_between_saves = 60;
  int warm_up = 200; // steps until the rate is at its maximum
};

/// Takes --steps, --out, --data, --rate, --threads, --seed and --save from the command line.
inline void read_options(int argc, char **argv, TrainingPlan &plan) {
  std::map<std::string, std::string> given;
  for (int i = 1; i < argc; i += 2)
    given[argv[i]] = i + 1 < argc ? argv[i + 1] : "";
  auto take = [&](const char *option, auto &value) {
    auto found = given.find(option);
    if (found == given.end())
      return;
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, std::string>)
      value = found->second;
    else
      value = static_cast<std::remove_cvref_t<decltype(value)>>(std::strtod(found->second.c_str(), nullptr));
    given.erase(found);
  };
  take("--steps", plan.steps), take("--out", plan.out), take("--data", plan.data), take("--rate", plan.rate);
  take("--threads", plan.threads), take("--seed", plan.seed), take("--save", plan.seconds_between_saves);
  if (!given.empty())
    stop(std::string(plan.program) + ": unknown option " + given.begin()->first);
  if (plan.steps < 1 || plan.threads < 1)
    stop(std::string(plan.program) + ": too few steps or threads; expected one or more of each");
}

/// Binds the initial weights that `add(file)` adds, by FIRST_WEIGHTS_ADD.
template <class Model, class Add>
void bind_first_weights(Model &model, Session &session, const TrainingPlan &plan, first_value_t value, Add add) {
  first_weights_t file = {};
  file.value = value;
  file.random.state = static_cast<std::uint64_t>(plan.seed);
  add(&file);
  const void *image = first_weights_image(&file);
  session.check(model.bind({static_cast<const std::byte *>(image), file.bytes}, &session.error));
  first_weights_release(&file);
}

/// Trains a model of a generated C++ header, with the session's arena; `begin()` binds the initial weights.
/// `step(training, rate, random)` returns the loss; its draws from `random` depend only on the step. `measure()`
/// returns the held-out loss.
template <class Model, class Begin, class Step, class Measure>
void train(Model &model, Session &session, const TrainingPlan &plan, Begin begin, Step step, Measure measure) {
  using Clock = std::chrono::steady_clock;
  auto seconds = [](Clock::time_point since) { return std::chrono::duration<double>(Clock::now() - since).count(); };
  const std::string saved_as = plan.out + ".training", losses = plan.out + ".losses", picture = plan.out + ".svg";
  kiln_training_t training{0, plan.seed};
  begin();
  if (std::filesystem::exists(saved_as)) {
    session.check(model.load_training(session.call.arena, training, saved_as.c_str(), &session.error));
    std::printf("resuming from step %d of %s\n", training.step, saved_as.c_str());
  }
  loss_curve_t curve{};
  curve.path = losses.c_str();
  loss_curve_open(&curve, training.step);

  const int first = training.step;
  const int between = std::max(plan.steps / 100 + 1, std::min(plan.steps / 2, 5)); // steps between measurements
  const auto rate = static_cast<float>(plan.rate);                                 // the maximum
  const Clock::time_point began = Clock::now();
  Clock::time_point shown = began, saved = began;
  double sum = 0;
  for (int count = 0; training.step < plan.steps;) {
    ++training.step;
    sum += step(training, kiln_cosine_rate(rate, 0.01f * rate, training.step, plan.steps, plan.warm_up),
                random_of_step(static_cast<std::uint64_t>(training.seed), training.step));
    ++count;
    const bool is_end = training.step == plan.steps;
    if (is_end || seconds(shown) > 1) {
      shown = Clock::now();
      const double each = seconds(began) / (training.step - first);
      std::printf("\rstep %d of %d: loss %.4f, %.0f %s/s, %.0f s left %s ", training.step, plan.steps, sum / count,
                  plan.per_step / each, plan.things, (plan.steps - training.step) * each, loss_curve_line(&curve));
      std::fflush(stdout);
    }
    if (is_end || training.step % between == 0) {
      loss_curve_add(&curve, training.step, sum / count, measure());
      sum = count = 0;
    }
    if (is_end || seconds(saved) > plan.seconds_between_saves) {
      saved = Clock::now();
      session.check(model.save_training(session.call.arena, training, saved_as.c_str(), &session.error));
      loss_curve_draw(&curve, picture.c_str(), plan.unit);
    }
  }
  loss_curve_draw(&curve, picture.c_str(), plan.unit); // the final plot, also of a run that stopped before it plotted
  session.check(model.save_weights(plan.out.c_str(), &session.error));
  std::printf("\nsaved %s\n", plan.out.c_str());
}

} // namespace support
