// SPDX-License-Identifier: Apache-2.0
//
// What the models of captions.h learn from: images in batches, and their sentences all words at once (teacher forcing).
#pragma once

#include "captions.h"

namespace captions {

inline constexpr std::int64_t batch = 32;
using Images = kiln::Tensor<kiln::f32, batch, side, side>;
using Sentences = kiln::Tensor<kiln::i32, batch, longest>; // what follows the end of one is no word

/// A step of training, as all of them are; `undecayed` has no weight decay.
template <class Loss>
constexpr auto training(const char *name, Loss loss, kiln::Names inputs, kiln::Names outputs, kiln::Names undecayed) {
  return kiln::train(name, loss, inputs, outputs, kiln::AdamW{.beta2 = 0.98, .weight_decay = 0.05})
      .clipped(1)
      .without_decay(undecayed);
}

template <class Base> struct RecurrentTraining : Base {
  static constexpr std::int64_t Hidden = Base::hidden, Memory = Base::Memory, Places = Base::Places;

  /// What is seen of each place, [batch, 1, Places].
  constexpr auto look(const auto &state, const kiln::tensor auto &keys) const {
    return this->attention.weights(kiln::reshape<batch, 1, Hidden>(std::get<0>(state)), keys);
  }
  /// [longest, batch, Width]: a step of a loop is a word of each sentence.
  constexpr auto words_first(const Sentences &sentences) const {
    return kiln::transpose<1, 0, 2>(this->embedding(sentences));
  }

  constexpr auto loss(Images images, Sentences sentences, Sentences targets) const {
    auto memory = this->features(images);
    auto keys = this->attention.keys(memory);
    auto step = [&](const auto &before, const auto &y) {
      return this->write(y, before, kiln::reshape<batch, Memory>(kiln::matmul(look(before, keys), memory)));
    };
    auto [last, written] = kiln::scan(this->begin_from(kiln::mean<1>(memory)), words_first(sentences), step);
    return kiln::cross_entropy(this->head(written), kiln::transpose<1, 0>(targets));
  }

  /// Hard attention by REINFORCE (Xu et al. 2015, 4.1): a place is drawn for each word; how probable it was counts for
  /// as much as the word's likelihood is above the mean that is kept, and the entropy a little.
  constexpr auto drawn(Images images, Sentences sentences, Sentences targets,
                       kiln::Tensor<kiln::f32, longest, batch, Places> uniform) const {
    auto memory = this->features(images);
    auto keys = this->attention.keys(memory);
    auto step = [&](const auto &before, const auto &given) {
      auto [y, own] = given;
      auto seen = look(before, keys);
      auto logs = kiln::log(seen + 1e-12);
      auto place = kiln::gumbel_max(logs, kiln::reshape<batch, 1, Places>(own));
      auto hot = kiln::cast<kiln::f32>(kiln::equal(kiln::reshape<batch, 1, 1>(place), kiln::arange<Places>(seen)));
      auto [next, parts] = this->write(y, before, kiln::reshape<batch, Memory>(kiln::matmul(hot, memory)));
      auto total = [](const auto &x) { return kiln::reshape<batch>(kiln::sum(x)); };
      return std::pair{next, std::tuple{parts, total(logs * hot), total(seen * logs)}};
    };
    auto [last, written] =
        kiln::scan(this->begin_from(kiln::mean<1>(memory)), std::tuple{words_first(sentences), uniform}, step);
    auto &[parts, log_of_place, minus_entropy] = written;
    auto words_of_steps = kiln::transpose<1, 0>(targets);
    auto hot = kiln::cast<kiln::f32>(
        kiln::equal(kiln::reshape<longest, batch, 1>(words_of_steps), kiln::arange<words>(images)));
    auto counts = kiln::sum(hot);                                            // [longest, batch]: 1, or 0
    auto likelihood = kiln::sum(kiln::log_softmax(this->head(parts)) * hot); // its logarithm
    auto mean_of = [&](const auto &x) { return kiln::sum<0>(kiln::sum(x)) / kiln::sum<0>(kiln::sum(counts)); };
    kiln::State<kiln::f32, longest> baseline("baseline");
    auto before = baseline.read(images);
    auto mean = kiln::sum(likelihood) / kiln::maximum(kiln::sum(counts), 1);
    baseline.store(before * 0.9 + mean * 0.1);
    auto reward = kiln::stop_gradient((likelihood - kiln::reshape<longest, 1>(before)) * counts);
    auto objective = mean_of(-1 * likelihood) - mean_of(reward * log_of_place) + 0.01 * mean_of(minus_entropy * counts);
    return kiln::outputs(objective, mean_of(-1 * likelihood));
  }
};

/// A model that learns by `loss` in the entry `train`, and whose `evaluate` is that of what was held out.
template <class Model> constexpr auto taught(kiln::Names undecayed) {
  constexpr kiln::Names inputs{"images", "sentences", "targets"};
  return std::tuple{training("train", &Model::loss, inputs, {"loss"}, undecayed),
                    kiln::entry("evaluate", &Model::loss, inputs, {"loss"})};
}

template <class Base> struct TransformerTraining : Base {
  constexpr auto loss(Images images, Sentences sentences, Sentences targets) const {
    auto memory = this->remember(images);
    auto x = this->embed(sentences, kiln::positions(sentences));
    auto y = this->decoder1(this->decoder0(x, memory), memory);
    return kiln::cross_entropy(this->head(this->decoder_norm(y)), targets);
  }
};

} // namespace captions
