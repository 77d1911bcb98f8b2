// SPDX-License-Identifier: Apache-2.0
//
// Pre-training and fine-tuning: the Vision Transformer is trained on five kinds of clothes, then only its head on the
// five others. For comparison, the head on an untrained body, and all weights starting from the pre-trained ones.
// fashion_vit_fine_tuner [--steps 1000] [--out fine_tuned.safetensors] [--data FOLDER] [--rate 0.002] [--threads 2] ...
// It can be stopped at any time: the same command resumes it.
#include "fashion_vit_head.hpp"
#include "fashion_vit_pretrain.hpp"
#include "learner.h"

#include <array>
#include <climits>

namespace {

using Whole = fashion::Learner<fashion_vit_pretrain::Model>;
using Head = fashion::Learner<fashion_vit_head::Model>;
using Kinds = std::array<std::uint8_t, 5>;
constexpr Kinds known{0, 1, 4, 7, 8}, others{2, 3, 5, 6, 9};
constexpr std::size_t kinds = known.size(), heldOut = 500;

/// Bytes of the optimiser state, and of arenas.
template <class Learner> constexpr std::size_t kept_by = FASHION_VIT_HEAD_TRAINING_BYTES;
template <> constexpr std::size_t kept_by<Whole> = FASHION_VIT_PRETRAIN_TRAINING_BYTES;
template <class Learner> fashion::Sizes sizes_of(int threads) {
  return {FASHION_VIT_HEAD_TRAIN_ARENA_BYTES(threads), FASHION_VIT_HEAD_FORWARD_ARENA_BYTES(threads),
          FASHION_VIT_HEAD_FORWARD_BATCH_MAX, kinds};
}
template <> fashion::Sizes sizes_of<Whole>(int threads) {
  return {FASHION_VIT_PRETRAIN_TRAIN_ARENA_BYTES(threads), FASHION_VIT_PRETRAIN_FORWARD_ARENA_BYTES(threads),
          FASHION_VIT_PRETRAIN_FORWARD_BATCH_MAX, kinds};
}

/// Returns the images of some kinds, with labels that are indices into `kept`.
support::FashionMnist only(const support::FashionMnist &all, const Kinds &kept) {
  support::FashionMnist result;
  for (std::size_t i = 0; i < all.labels.size(); ++i) {
    const auto kind = std::find(kept.begin(), kept.end(), all.labels[i]);
    if (kind == kept.end())
      continue;
    const std::uint8_t *first = &all.pixels[i * fashion::pixels];
    result.pixels.insert(result.pixels.end(), first, first + fashion::pixels);
    result.labels.push_back(static_cast<std::uint8_t>(kind - kept.begin()));
  }
  return result;
}

std::string names_of(const Kinds &kept) {
  std::string names;
  for (std::uint8_t kind : kept)
    names += (names.empty() ? "" : ", ") + std::string(support::FashionMnist::name(kind));
  return names;
}

template <class Learner> void bind_drawn(Learner &learner, const support::TrainingPlan &plan) {
  support::bind_first_weights(learner.model, learner.session(), plan, fashion::first_value, [](first_weights_t *file) {
#define ADD(...) FIRST_WEIGHTS_ADD(file, __VA_ARGS__)
    FASHION_VIT_HEAD_WEIGHTS(ADD)
  });
}

/// Binds the weights of a file, with a newly initialised head.
template <class Learner>
void bind_pretrained(Learner &learner, const support::TrainingPlan &plan, const std::string &path) {
  support::Session &session = learner.session();
  constexpr long shape[] = {kinds, 64};
  std::array<float, kinds * 64> weight;
  const std::array<float, kinds> bias{};
  random_t random = {static_cast<std::uint64_t>(plan.seed)};
  for (float &value : weight)
    value = fashion::first_value(&random, "head.weight", 2, shape);
  session.check(learner.model.bind(path.c_str(), &session.error));
  session.check(learner.model.write_weight("head.weight", 0, kinds, weight.data(), &session.error));
  session.check(learner.model.write_weight("head.bias", 0, kinds, bias.data(), &session.error));
}

/// Images of five kinds.
struct Task {
  support::FashionMnist training, test;
};

/// A completed training run.
struct Result {
  const char *what;
  std::string weights, losses; // files
  std::size_t kept, arena;
};

template <class Learner, class Begin>
Result run(const char *what, const support::TrainingPlan &plan, const kiln_executor_t *executor, const Task &task,
           Begin begin) {
  std::printf("\n%s\n", what);
  const fashion::Sizes sizes = sizes_of<Learner>(plan.threads);
  Learner learner(sizes, executor);
  learner.learn(plan, task.training, heldOut, [&] { begin(learner, plan); });
  return {what, plan.out, plan.out + ".losses", kept_by<Learner>, sizes.training};
}

/// Prints how many test images are correct with its weights, which `learner` binds.
void print(const Result &result, Head &learner, const support::FashionMnist &test) {
  support::Session &session = learner.session();
  session.check(learner.model.bind(result.weights.c_str(), &session.error));
  std::printf("%-33s %4zu of %zu test images right; optimiser %6.1f KiB, arena %4.1f MiB\n", result.what,
              learner.right(test), test.labels.size(), static_cast<double>(result.kept) / 1024,
              static_cast<double>(result.arena) / (1 << 20));
}

/// Plots the held-out loss of each.
void draw(std::span<const Result> results, const std::string &path) {
  constexpr const char *colours[] = {"#2ca02c", "#7f7f7f", "#1f77b4"};
  std::vector<loss_curve_t> curves(results.size());
  std::vector<loss_line_t> lines;
  for (std::size_t i = 0; i < results.size(); ++i) {
    curves[i].path = results[i].losses.c_str();
    loss_curve_open(&curves[i], INT_MAX);
    lines.push_back({&curves[i], 1, colours[i], results[i].what});
  }
  loss_lines_draw(lines.data(), static_cast<int>(lines.size()), path.c_str(), "held-out loss");
}

/// Pre-trains, then runs each kind of fine-tuning.
void run_all(const support::TrainingPlan &plan, const kiln_executor_t *executor, const Task &first,
             const Task &second) {
  support::TrainingPlan pretraining = plan;
  pretraining.out += ".pretrained";
  const auto drawn = [](auto &learner, const auto &its) { bind_drawn(learner, its); };
  const auto pretrained = [&](auto &learner, const auto &its) { bind_pretrained(learner, its, pretraining.out); };
  auto tuning = [&](const char *ending, double rate) {
    support::TrainingPlan result = plan;
    result.out += ending;
    result.steps = std::max(plan.steps / 2, 1);
    result.rate = rate;
    return result;
  };
  std::printf("%s, then %s\n", names_of(known).c_str(), names_of(others).c_str());
  const Result before = run<Whole>("pre-training of all weights", pretraining, executor, first, drawn);
  const Result after[] = {
      run<Head>("head alone", tuning("", 5 * plan.rate), executor, second, pretrained),
      run<Head>("head alone on an untrained body", tuning(".untrained", 5 * plan.rate), executor, second, drawn),
      run<Whole>("all weights", tuning(".all", plan.rate), executor, second, pretrained),
  };
  draw(after, plan.out + ".compared.svg");
  std::printf("\n");
  Head learner(sizes_of<Head>(plan.threads), executor);
  print(before, learner, first.test);
  for (const Result &result : after)
    print(result, learner, second.test);
}

} // namespace

int main(int argc, char **argv) try {
  support::TrainingPlan plan{.program = "fashion_vit_fine_tuner",
                             .out = "fine_tuned.safetensors",
                             .data = support::fashion_mnist_folder,
                             .steps = 1000,
                             .rate = 2e-3,
                             .unit = "cross-entropy",
                             .things = "images",
                             .per_step = fashion::batch};
  support::read_options(argc, argv, plan);
  const auto training = support::read_fashion_mnist(plan.data, "train"),
             test = support::read_fashion_mnist(plan.data, "t10k");
  if (!training || !test)
    return fashion::skipped(plan.data);
  kiln_error_t error{};
  kiln_pool_t *pool;
  if (fashion_vit_head_pool_create(static_cast<std::uint32_t>(plan.threads), &pool, &error) != KILN_OK)
    support::stop(error.message);
  run_all(plan, fashion_vit_head_pool_executor(pool), {only(*training, known), only(*test, known)},
          {only(*training, others), only(*test, others)});
  fashion_vit_head_pool_destroy(pool);
  return 0;
} catch (const std::exception &error) {
  support::stop(error.what());
}
