// SPDX-License-Identifier: Apache-2.0
//
// The small training of replicas.h, in one process or in one of several.
#pragma once

#include <functional>
#include <gtest/gtest.h>
#include <random>

#include "session.h"
#include "thread_ranks.h"
#include "trainer.h"
#include "writer.h"

namespace kiln::test {

/// The members of the struct of such a training.
#define KILN_TRAINED_MEMBERS(name, NAME)                                                                               \
  KILN_TRAINER(name, NAME);                                                                                            \
  static std::vector<kiln::testing::WeightShape> weights() { return {NAME##_WEIGHTS(KILN_TEST_WEIGHT)}; }              \
  [[maybe_unused]] static constexpr auto read = name##_read_weight;                                                    \
  [[maybe_unused]] static constexpr auto descend = name##_descend;                                                     \
  [[maybe_unused]] static constexpr auto load = name##_load_training;                                                  \
  [[maybe_unused]] static constexpr auto saveAlone = name##_save_training;                                             \
  [[maybe_unused]] static constexpr auto saveWeights = name##_save_weights;                                            \
  [[maybe_unused]] static constexpr auto swapAverage = name##_swap_average;                                            \
  [[maybe_unused]] static constexpr size_t weightBytes = NAME##_WEIGHT_BYTES;                                          \
  static constexpr size_t arenaBytes =                                                                                 \
      NAME##_TRAIN_ARENA_BYTES(1) + NAME##_DESCEND_ARENA_BYTES(1) + NAME##_EVALUATE_ARENA_BYTES(1)

/// Defines the struct of a training; the second macro is for trainings whose processes save together.
#define KILN_TRAINED(name, NAME)                                                                                       \
  struct name {                                                                                                        \
    KILN_TRAINED_MEMBERS(name, NAME);                                                                                  \
  }
#define KILN_TRAINED_TOGETHER(name, NAME)                                                                              \
  struct name {                                                                                                        \
    KILN_TRAINED_MEMBERS(name, NAME);                                                                                  \
    static constexpr auto save = name##_save_training_together;                                                        \
  }

constexpr size_t rows = 6, classes = 40, steps = 10;

/// The inputs of all steps, with all micro-batches of each step.
struct Inputs {
  Inputs(uint32_t seed, size_t microBatches) : words(2 * steps * microBatches * rows) {
    std::mt19937 random(seed);
    for (int32_t &word : words)
      word = static_cast<int32_t>(random() % classes);
  }
  std::vector<int32_t> words;
};

/// Which part of the inputs a process takes, of how many parts, its communicators, and a trace.
struct Place {
  size_t part = 0, parts = 1;
  const kiln_communicator_t *ranks = nullptr, *replicas = nullptr;
  const kiln_trace_t *trace = nullptr;
  const kiln_communicator_t *stages = nullptr;
};

inline kiln_options_t optionsOf(const Place &place) {
  kiln_options_t options{};
  if (place.ranks) {
    options.rank = place.ranks->rank;
    options.ranks = place.ranks->size;
  }
  if (place.replicas) {
    options.replica = place.replicas->rank;
    options.replicas = place.replicas->size;
  }
  if (place.stages) {
    options.stage = place.stages->rank;
    options.stages = place.stages->size;
  }
  return options;
}

/// One process of a training: seven AdamW steps, then gradient descent.
template <class Api> class TrainedProcess {
public:
  using Library = Api;
  explicit TrainedProcess(const Inputs &inputs, const Place &place = {})
      : inputs(inputs), place(place), arena((Api::arenaBytes + 63) / 64 * 64) {
    const kiln_options_t options = optionsOf(place);
    typename Api::Model *made = nullptr;
    check(Api::create(&options, &made, &error));
    model.reset(made);
    const testing::WeightImage image(Api::weights());
    check(Api::bind(made, image.data(), image.size(), &error));
    std::memset(arena.data, 0, Api::trainingBytes);
    call = {arena.data, arena.bytes, nullptr, &error};
    call.communicator = place.ranks;
    call.replicas = place.replicas;
    call.trace = place.trace;
    call.stages = place.stages;
  }

  /// Runs one more step, and appends its loss and norm to the results.
  kiln_status_t step() {
    const size_t perStep = inputs.words.size() / steps / 2, own = perStep / place.parts;
    const int32_t number = ++training.step;
    const int32_t *tokens = &inputs.words[2 * perStep * static_cast<size_t>(number - 1) + own * place.part];
    const int32_t *targets = tokens + perStep;
    const float rate = number <= 7 ? 1e-2f : 1e-1f;
    float loss = NAN, norm = 0;
    const kiln_status_t status =
        number <= 7 ? Api::train(model.get(), &call, tokens, targets, &rate, &number, &training.seed, &loss, &norm)
                    : Api::descend(model.get(), &call, tokens, targets, &rate, &number, &training.seed, &loss);
    results.insert(results.end(), {loss, norm});
    return status;
  }
  void train(int32_t last) {
    while (training.step < last)
      check(step());
  }
  /// Appends the loss without training, and some weights; NaN for weights that this stage does not have.
  void look() {
    results.push_back(NAN);
    check(Api::evaluate(model.get(), &call, inputs.words.data(), &inputs.words[rows], &results.back()));
    for (const char *name : {"words.weight", "blocks.1.norm.bias", "blocks.2.down.bias", "norm.weight"}) {
      float values[16];
      const size_t count = std::strcmp(name, "words.weight") == 0 ? 1 : 16; // rows; elements if one-dimensional
      std::fill(std::begin(values), std::end(values), NAN);
      const kiln_status_t status = Api::read(model.get(), name, 0, count, values, &error);
      if (!place.stages)
        check(status);
      results.insert(results.end(), std::begin(values), std::end(values));
    }
  }
  void check(kiln_status_t status) const { EXPECT_EQ(status, KILN_OK) << error.message; }

  std::vector<float> results;
  kiln_error_t error{};
  kiln_call_t call{};
  kiln_training_t training{0, 5};
  std::unique_ptr<typename Api::Model, void (*)(typename Api::Model *)> model{nullptr, Api::destroy};

private:
  const Inputs &inputs;
  const Place place;
  const Memory arena;
};

/// Runs all steps; returns losses and norms, the loss without training, and some weights.
template <class Api> std::vector<float> train(const Inputs &inputs, const Place &place = {}) {
  TrainedProcess<Api> process(inputs, place);
  process.train(static_cast<int32_t>(steps));
  process.look();
  return process.results;
}

inline void expectNear(const std::vector<float> &got, const std::vector<float> &wanted, double part = 1e-4) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(got[i], wanted[i], part * std::abs(wanted[i]) + part / 10) << i;
}

/// The number of processes in each dimension.
struct Grid {
  uint32_t ranks, replicas, stages;
};

/// Calls `work` for each process, in a separate thread, with processes numbered by stage, then replica, then rank. Each
/// replica has its part of the inputs.
inline void runGrid(const Grid &of, const std::function<void(uint32_t process, const Place &)> &work) {
  std::deque<ThreadRanks> ranks, replicas, stages; // by the indices of the two other dimensions
  for (uint32_t i = 0; i < of.replicas * of.stages; ++i)
    ranks.emplace_back(of.ranks);
  for (uint32_t i = 0; i < of.ranks * of.stages; ++i)
    replicas.emplace_back(of.replicas);
  for (uint32_t i = 0; i < of.ranks * of.replicas; ++i)
    stages.emplace_back(of.stages);
  ThreadRanks(of.ranks * of.replicas * of.stages).run([&](uint32_t process) {
    const uint32_t rank = process % of.ranks, replica = process / of.ranks % of.replicas;
    const uint32_t stage = process / of.ranks / of.replicas;
    const kiln_communicator_t own[] = {ranks[replica * of.stages + stage].communicator(rank),
                                       replicas[rank * of.stages + stage].communicator(replica),
                                       stages[rank * of.replicas + replica].communicator(stage)};
    Place place{replica, of.replicas};
    place.ranks = of.ranks > 1 ? &own[0] : nullptr;
    place.replicas = of.replicas > 1 ? &own[1] : nullptr;
    place.stages = of.stages > 1 ? &own[2] : nullptr;
    work(process, place);
  });
}

} // namespace kiln::test
