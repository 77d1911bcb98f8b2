// SPDX-License-Identifier: Apache-2.0
//
// Trains the Vision Transformer on Fashion-MNIST, in pictures that are moved by up to two pixels and mirrored:
// fashion_vit_trainer [--steps 8000] [--out fashion_vit.safetensors] [--data FOLDER] [--rate 0.002] [--threads 2] ...
// It can be stopped at any time: the same command goes on. Fifty batches of the last pictures are held out.
#include "fashion_vit_train.hpp"
#include "support/fashion_mnist.h"
#include "support/trainer.h"

#include <algorithm>

namespace {

constexpr std::size_t side = 28, pixels = side * side, classes = 10, batch = 128;
constexpr int notHere = 77; // what test programs return that cannot run
constexpr std::size_t measured = FASHION_VIT_TRAIN_FORWARD_BATCH_MAX, heldOut = 50 * measured;

float first_value(random_t *random, const char *name, int rank, const long *shape) {
  if (std::string_view(name) == "positions")
    return static_cast<float>(0.02 * random_normal(random));
  return first_value_of_layer(random, name, rank, shape);
}

void bind_first_weights(fashion_vit_train::Model &model, support::Session &session, const support::TrainingPlan &plan) {
  support::bind_first_weights(model, session, plan, first_value, [](first_weights_t *file) {
#define ADD(...) FIRST_WEIGHTS_ADD(file, __VA_ARGS__)
    FASHION_VIT_TRAIN_WEIGHTS(ADD)
  });
}

/// A picture moved, and perhaps mirrored, with zeros where it was not.
void vary(const std::uint8_t *from, float *to, random_t *random) {
  const std::uint64_t drawn = random_bits(random);
  const int down = static_cast<int>(drawn % 5) - 2, right = static_cast<int>(drawn / 5 % 5) - 2;
  const bool isMirrored = drawn / 25 % 2;
  for (int y = 0; y < static_cast<int>(side); ++y)
    for (int x = 0; x < static_cast<int>(side); ++x) {
      const int row = y + down, column = (isMirrored ? static_cast<int>(side) - 1 - x : x) + right;
      const bool isInside = std::min(row, column) >= 0 && std::max(row, column) < static_cast<int>(side);
      to[y * side + x] = isInside ? static_cast<float>(from[row * side + column]) / 255 : 0;
    }
}

/// The cross-entropy of pictures that were held out.
double measure(const fashion_vit_train::Model &model, support::Session &session, const support::FashionMnist &data) {
  std::vector<float> images(measured * pixels), logits(measured * classes);
  double sum = 0;
  for (std::size_t first = data.labels.size() - heldOut; first < data.labels.size(); first += measured) {
    for (std::size_t i = 0; i < images.size(); ++i)
      images[i] = static_cast<float>(data.pixels[first * pixels + i]) / 255;
    session.check(model.forward(session.call, {images.data(), measured}, {logits.data(), measured}));
    for (std::size_t i = 0; i < measured; ++i) {
      const float *row = &logits[i * classes];
      double total = 0;
      for (std::size_t k = 0; k < classes; ++k)
        total += std::exp(row[k]);
      sum += std::log(total) - row[data.labels[first + i]];
    }
  }
  return sum / heldOut;
}

} // namespace

int main(int argc, char **argv) try {
  support::TrainingPlan plan{.program = "fashion_vit_trainer",
                             .out = "fashion_vit.safetensors",
                             .data = support::fashion_mnist_folder,
                             .steps = 8000,
                             .rate = 2e-3,
                             .unit = "cross-entropy",
                             .things = "images",
                             .per_step = batch};
  support::read_options(argc, argv, plan);
  const std::optional<support::FashionMnist> data = support::read_fashion_mnist(plan.data, "train");
  if (!data) {
    std::printf("skipped: no Fashion-MNIST in %s (package dataset-fashion-mnist)\n", plan.data.c_str());
    return notHere;
  }
  support::Session session(FASHION_VIT_TRAIN_TRAIN_ARENA_BYTES(plan.threads)),
      measuring(FASHION_VIT_TRAIN_FORWARD_ARENA_BYTES(plan.threads));
  fashion_vit_train::Model model;
  kiln_pool_t *pool;
  session.check(fashion_vit_train_pool_create(static_cast<std::uint32_t>(plan.threads), &pool, &session.error));
  session.call.executor = measuring.call.executor = fashion_vit_train_pool_executor(pool);

  std::vector<float> images(batch * pixels);
  std::vector<std::int32_t> labels(batch);
  auto step = [&](const kiln_training_t &training, float rate, random_t random) {
    for (std::size_t i = 0; i < batch; ++i) {
      const std::size_t at = random_bits(&random) % (data->labels.size() - heldOut);
      vary(&data->pixels[at * pixels], &images[i * pixels], &random);
      labels[i] = data->labels[at];
    }
    float loss, norm;
    session.check(model.train(session.call, images.data(), labels.data(), &rate, &training.step, &loss, &norm));
    return loss;
  };
  support::train(
      model, session, plan, [&] { bind_first_weights(model, session, plan); }, step,
      [&] { return measure(model, measuring, *data); });
  fashion_vit_train_pool_destroy(pool);
  return 0;
} catch (const std::exception &error) {
  support::stop(error.what());
}
