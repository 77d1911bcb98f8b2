// SPDX-License-Identifier: Apache-2.0
//
// Trains the Vision Transformer on Fashion-MNIST:
// fashion_vit_trainer [--steps 8000] [--out fashion_vit.safetensors] [--data FOLDER] [--rate 0.002] [--threads 2] ...
// It can be stopped at any time: the same command resumes it. Fifty batches of the last images are held out.
#include "fashion_vit_train.hpp"
#include "learner.h"

int main(int argc, char **argv) try {
  support::TrainingPlan plan{.program = "fashion_vit_trainer",
                             .out = "fashion_vit.safetensors",
                             .data = support::fashion_mnist_folder,
                             .steps = 8000,
                             .rate = 2e-3,
                             .unit = "cross-entropy",
                             .things = "images",
                             .per_step = fashion::batch};
  support::read_options(argc, argv, plan);
  const std::optional<support::FashionMnist> data = support::read_fashion_mnist(plan.data, "train");
  if (!data)
    return fashion::skipped(plan.data);
  kiln_error_t error{};
  kiln_pool_t *pool;
  if (fashion_vit_train_pool_create(static_cast<std::uint32_t>(plan.threads), &pool, &error) != KILN_OK)
    support::stop(error.message);
  fashion::Learner<fashion_vit_train::Model> learner({FASHION_VIT_TRAIN_TRAIN_ARENA_BYTES(plan.threads),
                                                      FASHION_VIT_TRAIN_FORWARD_ARENA_BYTES(plan.threads),
                                                      FASHION_VIT_TRAIN_FORWARD_BATCH_MAX, 10},
                                                     fashion_vit_train_pool_executor(pool));
  learner.learn(plan, *data, 50 * FASHION_VIT_TRAIN_FORWARD_BATCH_MAX, [&] {
    support::bind_first_weights(learner.model, learner.session(), plan, fashion::first_value,
                                [](first_weights_t *file) {
#define ADD(...) FIRST_WEIGHTS_ADD(file, __VA_ARGS__)
                                  FASHION_VIT_TRAIN_WEIGHTS(ADD)
                                });
  });
  fashion_vit_train_pool_destroy(pool);
  return 0;
} catch (const std::exception &error) {
  support::stop(error.what());
}
