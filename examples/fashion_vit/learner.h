// SPDX-License-Identifier: Apache-2.0
//
// A library of training.h with its training data: images that are shifted by up to two pixels and mirrored.
#pragma once

#include "support/fashion_mnist.h"
#include "support/trainer.h"
#include "support/varied.h"

#include <algorithm>
#include <span>

namespace fashion {

inline constexpr int side = 28, pixels = side * side, batch = 128;

/// Returns the exit status of a program whose dataset is missing: its test is skipped.
inline int skipped(const std::string &folder) {
  std::printf("skipped: no Fashion-MNIST in %s (package dataset-fashion-mnist)\n", folder.c_str());
  return 77;
}

inline float first_value(random_t *random, const char *name, int rank, const long *shape) {
  if (std::string_view(name) == "positions")
    return static_cast<float>(0.02 * random_normal(random));
  return first_value_of_layer(random, name, rank, shape);
}

/// Sizes from a library's generated header.
struct Sizes {
  std::size_t training, forward; // bytes of arenas
  std::size_t batch, classes;    // of `forward`
};

template <class Model> class Learner {
public:
  Learner(const Sizes &sizes, const kiln_executor_t *executor)
      : sizes(sizes), training(sizes.training), measuring(sizes.forward), logits(sizes.batch * sizes.classes) {
    training.call.executor = measuring.call.executor = executor;
  }

  /// Trains on all images but the last `held_out`, whose cross-entropy is measured. `begin()` binds the initial
  /// weights.
  template <class Begin>
  void learn(const support::TrainingPlan &plan, const support::FashionMnist &data, std::size_t held_out, Begin begin) {
    const std::size_t learned = data.labels.size() - held_out;
    support::train(
        model, training, plan, begin,
        [&](const kiln_training_t &now, float rate, random_t random) { return step(data, learned, now, rate, random); },
        [&] { return cross_entropy(data, learned); });
  }

  /// Returns how many images are classified correctly.
  std::size_t right(const support::FashionMnist &data) {
    std::size_t count = 0;
    look(data, 0, [&](std::span<const float> row, std::uint8_t label) {
      count += std::max_element(row.begin(), row.end()) - row.begin() == label;
    });
    return count;
  }

  Model model;
  support::Session &session() { return training; }

private:
  float step(const support::FashionMnist &data, std::size_t learned, const kiln_training_t &now, float rate,
             random_t random) {
    for (std::size_t i = 0; i < batch; ++i) {
      const std::size_t at = random_bits(&random) % learned;
      support::vary(&data.pixels[at * pixels], &images[i * pixels], &random);
      labels[i] = data.labels[at];
    }
    float loss, norm;
    training.check(model.train(training.call, images.data(), labels.data(), &rate, &now.step, &loss, &norm));
    return loss;
  }
  double cross_entropy(const support::FashionMnist &data, std::size_t first) {
    double sum = 0;
    look(data, first, [&](std::span<const float> row, std::uint8_t label) {
      double total = 0;
      for (float logit : row)
        total += std::exp(logit);
      sum += std::log(total) - row[label];
    });
    return sum / static_cast<double>(data.labels.size() - first);
  }
  /// Calls each(logits, label) for all images from `first` on.
  template <class Each> void look(const support::FashionMnist &data, std::size_t first, Each each) {
    for (std::size_t count; first < data.labels.size(); first += count) {
      count = std::min(sizes.batch, data.labels.size() - first);
      shown.assign(&data.pixels[first * pixels], &data.pixels[first * pixels] + count * pixels);
      for (float &value : shown)
        value /= 255;
      measuring.check(model.forward(measuring.call, {shown.data(), count}, {logits.data(), count}));
      for (std::size_t i = 0; i < count; ++i)
        each(std::span(logits).subspan(i * sizes.classes, sizes.classes), data.labels[first + i]);
    }
  }

  Sizes sizes;
  support::Session training, measuring;
  std::vector<float> images = std::vector<float>(batch * pixels), logits, shown;
  std::vector<std::int32_t> labels = std::vector<std::int32_t>(batch);
};

} // namespace fashion
