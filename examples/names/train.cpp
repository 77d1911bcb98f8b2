// SPDX-License-Identifier: Apache-2.0
//
// Trains a translator on the names that are not in the test set: names_recurrent_trainer, names_transformer_trainer
// [--steps N] [--out FILE.safetensors] [--data FOLDER] [--rate R] [--threads 2] ... It can be stopped at any time: the
// same command resumes it.
#include "names_train.hpp"

#include "catalogue.h"
#include "support/trainer.h"

#include <algorithm>

namespace {

constexpr bool isRecurrent = std::string_view(NAMES_MODEL) == "recurrent";
constexpr std::size_t batch = names::batch;
constexpr int notHere = 77; // exit status of a skipped test

using Tokens = std::vector<std::int32_t>;
struct Example {
  Tokens source, target; // with start and end
  std::size_t size() const { return source.size() + target.size(); }
};

/// Returns the examples, the shortest first.
std::vector<Example> examples_of(const std::vector<names::Pair> &pairs) {
  std::vector<Example> examples;
  for (const names::Pair &pair : pairs) {
    Tokens target = names::tokens_of(pair.french);
    target.insert(target.begin(), names::start);
    target.push_back(names::end);
    examples.push_back({names::source_of(pair.kind, pair.english), target});
  }
  std::ranges::stable_sort(examples, {}, &Example::size);
  return examples;
}

/// Samples names of similar lengths, which need little padding: some from a random range of the sorted examples.
std::vector<const Example *> draw(const std::vector<Example> &examples, random_t random) {
  std::vector<const Example *> drawn(4 * batch);
  const std::size_t first = random_bits(&random) % (examples.size() - drawn.size());
  for (std::size_t i = 0; i < drawn.size(); ++i)
    drawn[i] = &examples[first + i];
  for (std::size_t i = 0; i < batch; ++i)
    std::swap(drawn[i], drawn[i + random_bits(&random) % (drawn.size() - i)]);
  drawn.resize(batch);
  return drawn;
}

/// Returns one part of each, padded with 0 to the longest.
Tokens rows_of(const std::vector<const Example *> &examples, Tokens Example::*part) {
  std::size_t longest = 0;
  for (const Example *example : examples)
    longest = std::max(longest, (example->*part).size());
  Tokens rows(examples.size() * longest);
  for (std::size_t i = 0; i < examples.size(); ++i)
    std::ranges::copy(examples[i]->*part, &rows[i * longest]);
  return rows;
}

/// Calls `entry(target tokens, source, target)`, with arguments in the layout of the entries. Returns its status.
template <class Entry> kiln_status_t call(const std::vector<const Example *> &examples, Entry entry) {
  using View = kiln::View<const std::int32_t, kiln::dynamic, kiln::dynamic>;
  const Tokens source = rows_of(examples, &Example::source), target = rows_of(examples, &Example::target);
  const std::size_t pairs = examples.size(), length = target.size() / pairs;
  return entry(static_cast<std::int64_t>(length) - 1, View(source.data(), pairs, source.size() / pairs),
               View(target.data(), pairs, length));
}

/// Returns the held-out loss per letter.
double measure(const names_train::Model &model, support::Session &session, const std::vector<Example> &examples) {
  double sum = 0, letters = 0;
  for (std::size_t first = 0; first < examples.size(); first += batch) {
    std::vector<const Example *> part;
    double count = 0;
    for (std::size_t i = first; i < std::min(first + batch, examples.size()); ++i) {
      part.push_back(&examples[i]);
      count += static_cast<double>(examples[i].target.size() - 1);
    }
    float loss;
    session.check(call(part, [&](std::int64_t length, auto source, auto target) {
      return model.evaluate(session.call, length, source, target, &loss);
    }));
    sum += count * loss;
    letters += count;
  }
  return sum / letters;
}

float first_value(random_t *random, const char *name, int rank, const long *shape) {
  const std::string_view weight = name;
  if (weight == "embedding.weight")
    return static_cast<float>(random_normal(random) / (isRecurrent ? 1 : std::sqrt(shape[1])));
  if (weight == "attention.score")
    return static_cast<float>(random_normal(random) / std::sqrt(shape[0]));
  if (weight.find("_ih") != weight.npos || weight.find("_hh") != weight.npos) // rows of three gates
    return static_cast<float>((2 * random_uniform(random) - 1) / std::sqrt(shape[0] / 3));
  return first_value_of_layer(random, name, rank, shape);
}

void bind_first_weights(names_train::Model &model, support::Session &session, const support::TrainingPlan &plan) {
  support::bind_first_weights(model, session, plan, first_value, [](first_weights_t *file) {
#define ADD(...) FIRST_WEIGHTS_ADD(file, __VA_ARGS__)
    NAMES_TRAIN_WEIGHTS(ADD)
  });
}

} // namespace

int main(int argc, char **argv) try {
  support::TrainingPlan plan{.program = "names_" NAMES_MODEL "_trainer",
                             .out = NAMES_MODEL ".safetensors",
                             .data = names::catalogues,
                             .steps = isRecurrent ? 10000 : 9000,
                             .rate = isRecurrent ? 2e-3 : 1.5e-3,
                             .unit = "cross-entropy",
                             .things = "names",
                             .per_step = batch};
  support::read_options(argc, argv, plan);
  const names::Pairs pairs = names::read_pairs(plan.data);
  const std::vector<Example> training = examples_of(pairs.training), test = examples_of(pairs.test);
  if (training.size() <= 4 * batch) {
    std::printf("skipped: no French catalogues in %s (package iso-codes)\n", plan.data.c_str());
    return notHere;
  }
  support::Session session(NAMES_TRAIN_TRAIN_ARENA_BYTES(plan.threads)),
      measuring(NAMES_TRAIN_EVALUATE_ARENA_BYTES(plan.threads));
  names_train::Model model;
  kiln_pool_t *pool;
  session.check(names_train_pool_create(static_cast<std::uint32_t>(plan.threads), &pool, &session.error));
  session.call.executor = measuring.call.executor = names_train_pool_executor(pool);

  auto step = [&](const kiln_training_t &trained, float rate, random_t random) {
    float loss, norm;
    session.check(call(draw(training, random), [&](std::int64_t length, auto source, auto target) {
      return model.train(session.call, length, source, target, &rate, &trained.step, &trained.seed, &loss, &norm);
    }));
    return loss;
  };
  support::train(
      model, session, plan, [&] { bind_first_weights(model, session, plan); }, step,
      [&] { return measure(model, measuring, test); });
  names_train_pool_destroy(pool);
  return 0;
} catch (const std::exception &error) {
  support::stop(error.what());
}
