// SPDX-License-Identifier: Apache-2.0
//
// Trains a captioner on mosaics of four images that are sampled, shifted by up to two pixels and mirrored:
// captions_trainer recurrent|transformer|hard [--steps N] [--out FILE] [--data FOLDER] [--rate X] [--threads 2] ...
// `hard` continues from recurrent.safetensors. It can be stopped at any time: the same command resumes it. 640 mosaics
// of the last images are held out.
#include "captions_train_recurrent.hpp"
#include "captions_train_transformer.hpp"

#include "mosaic.h"
#include "support/trainer.h"
#include "support/varied.h"

namespace {

using namespace captions;
constexpr std::size_t batch = 32, longest = 12, places = 14 * 14, pixels = half * half;
constexpr std::size_t measured = 20, heldOut = 4 * batch * measured; // batches; images
constexpr int notHere = 77;                                          // exit status of a skipped test

// The arena sizes of two entries, from the macros of a generated header.
#define LIBRARY(Name, NAME, TRAIN, EVALUATE)                                                                           \
  struct Name {                                                                                                        \
    static std::size_t training_bytes(int threads) { return NAME##_##TRAIN##_ARENA_BYTES(threads); }                   \
    static std::size_t measuring_bytes(int threads) { return NAME##_##EVALUATE##_ARENA_BYTES(threads); }               \
    static void add_weights(first_weights_t *file) { NAME##_WEIGHTS(ADD) }                                             \
  };
#define ADD(...) FIRST_WEIGHTS_ADD(file, __VA_ARGS__)
LIBRARY(Soft, CAPTIONS_TRAIN_RECURRENT, TRAIN, EVALUATE)
LIBRARY(Hard, CAPTIONS_TRAIN_RECURRENT, TRAIN_HARD, EVALUATE_HARD)
LIBRARY(Transformer, CAPTIONS_TRAIN_TRANSFORMER, TRAIN, EVALUATE)

float first_value(random_t *random, const char *name, int rank, const long *shape) {
  const std::string_view weight = name;
  if (weight == "features.places")
    return static_cast<float>(0.1 * random_normal(random));
  if (weight == "embedding.weight")
    return static_cast<float>(random_normal(random));
  if (weight == "attention.score")
    return static_cast<float>(random_normal(random) / std::sqrt(shape[0]));
  return weight.ends_with("running_var") ? 1.0f : first_value_of_layer(random, name, rank, shape);
}

/// The arguments of a call.
struct Batch {
  std::vector<float> images = std::vector<float>(batch * side * side), uniform;
  std::vector<std::int32_t> sentences = std::vector<std::int32_t>(batch * longest), targets = sentences;

  void put_sentence(std::size_t at, const std::vector<Said> &sentence) {
    for (std::size_t i = 0; i < longest; ++i) {
      sentences[at * longest + i] = i < sentence.size() ? sentence[i].word : end;
      targets[at * longest + i] = i + 1 < sentence.size() ? sentence[i + 1].word : -1;
    }
  }
  void draw(const support::FashionMnist &data, random_t *random) {
    float picture[pixels];
    for (std::size_t at = 0; at < batch; ++at) {
      std::array<std::uint8_t, 4> labels{};
      for (std::size_t quarter = 0; quarter < 4; ++quarter) {
        const std::size_t number = random_bits(random) % (data.labels.size() - heldOut);
        support::vary(&data.pixels[number * pixels], picture, random);
        put(picture, quarter, &images[at * side * side]);
        labels[quarter] = data.labels[number];
      }
      put_sentence(at, sentence_of(labels));
    }
  }
  void take(const support::FashionMnist &data, std::size_t number) {
    for (std::size_t at = 0; at < batch; ++at) {
      const Mosaic mosaic(data, (data.labels.size() - heldOut) / 4 + number * batch + at);
      std::copy(mosaic.pixels.begin(), mosaic.pixels.end(), &images[at * side * side]);
      put_sentence(at, mosaic.sentence);
    }
  }
  void draw_places(random_t *random) {
    uniform.resize(longest * batch * places);
    for (float &value : uniform)
      value = random_uniform_float(random);
  }
};

/// Calls a model's entries and returns their losses.
template <class Library, class Model> struct Caller {
  static constexpr bool isHard = std::is_same_v<Library, Hard>;
  const Model &model;
  support::Session &session;

  float train(const Batch &batch, float rate, std::int32_t step) {
    float objective, loss, norm;
    if constexpr (isHard)
      session.check(model.train_hard(session.call, batch.images.data(), batch.sentences.data(), batch.targets.data(),
                                     batch.uniform.data(), &rate, &step, &objective, &loss, &norm));
    else
      session.check(model.train(session.call, batch.images.data(), batch.sentences.data(), batch.targets.data(), &rate,
                                &step, &loss, &norm));
    return loss;
  }
  float evaluate(const Batch &batch) {
    float objective, loss;
    if constexpr (isHard)
      session.check(model.evaluate_hard(session.call, batch.images.data(), batch.sentences.data(), batch.targets.data(),
                                        batch.uniform.data(), &objective, &loss));
    else
      session.check(
          model.evaluate(session.call, batch.images.data(), batch.sentences.data(), batch.targets.data(), &loss));
    return loss;
  }
};

template <class Library, class Model>
void run(const support::TrainingPlan &plan, const support::FashionMnist &data, const kiln_executor_t *executor) {
  constexpr bool isHard = std::is_same_v<Library, Hard>;
  support::Session session(Library::training_bytes(plan.threads)), measuring(Library::measuring_bytes(plan.threads));
  session.call.executor = measuring.call.executor = executor;
  Model model;
  Caller<Library, Model> trainer{model, session}, judge{model, measuring};
  Batch own, held;
  auto step = [&](const kiln_training_t &training, float rate, random_t random) {
    own.draw(data, &random);
    if (isHard)
      own.draw_places(&random);
    return trainer.train(own, rate, training.step);
  };
  auto measure = [&] {
    random_t random = {1};
    double sum = 0;
    for (std::size_t number = 0; number < measured; ++number) {
      held.take(data, number);
      if (isHard)
        held.draw_places(&random);
      sum += judge.evaluate(held) / measured;
    }
    return sum;
  };
  auto begin = [&] {
    if (isHard)
      session.check(model.bind(CAPTIONS_FOLDER "/recurrent.safetensors", &session.error));
    else
      support::bind_first_weights(model, session, plan, first_value, Library::add_weights);
  };
  support::train(model, session, plan, begin, step, measure);
}

} // namespace

int main(int argc, char **argv) try {
  const std::string which = argc > 1 ? argv[1] : "";
  const bool isHard = which == "hard";
  if (!isHard && which != "recurrent" && which != "transformer")
    support::stop("captions_trainer recurrent|transformer|hard [--steps N] [--out FILE] [--data FOLDER] [--rate X] "
                  "[--threads N] [--seed N] [--save SECONDS]");
  support::TrainingPlan plan{.program = "captions_trainer",
                             .out = which + ".safetensors",
                             .data = support::fashion_mnist_folder,
                             .steps = isHard ? 2000 : 8000,
                             .rate = isHard ? 5e-4 : 2e-3,
                             .unit = "cross-entropy",
                             .things = "mosaics",
                             .per_step = batch};
  support::read_options(argc - 1, argv + 1, plan);
  const std::optional<support::FashionMnist> data = support::read_fashion_mnist(plan.data, "train");
  if (!data) {
    std::printf("skipped: no Fashion-MNIST in %s (package dataset-fashion-mnist)\n", plan.data.c_str());
    return notHere;
  }
  kiln_error_t error{};
  kiln_pool_t *pool;
  if (captions_train_recurrent_pool_create(static_cast<std::uint32_t>(plan.threads), &pool, &error) != KILN_OK)
    support::stop(error.message);
  const kiln_executor_t *executor = captions_train_recurrent_pool_executor(pool);
  if (isHard)
    run<Hard, captions_train_recurrent::Model>(plan, *data, executor);
  else if (which == "recurrent")
    run<Soft, captions_train_recurrent::Model>(plan, *data, executor);
  else
    run<Transformer, captions_train_transformer::Model>(plan, *data, executor);
  captions_train_recurrent_pool_destroy(pool);
  return 0;
} catch (const std::exception &error) {
  support::stop(error.what());
}
