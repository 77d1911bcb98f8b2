// SPDX-License-Identifier: Apache-2.0
//
// Training entries of the models of captions.h: batches of images, and their sentences with all words at once (teacher
// forcing).
#pragma once

#include "captions.h"

namespace captions {

inline constexpr std::int64_t batch = 32;
using Images = kiln::Tensor<kiln::f32, batch, side, side>;
using Sentences = kiln::Tensor<kiln::i32, batch, longest>; // padded after the end of a sentence

/// Returns a training entry with the common options; `undecayed` parameters have no weight decay.
template <class Loss>
constexpr auto training(const char *name, Loss loss, kiln::Names inputs, kiln::Names outputs, kiln::Names undecayed) {
  return kiln::train(name, loss, inputs, outputs, kiln::AdamW{.beta2 = 0.98, .weight_decay = 0.05})
      .clipped(1)
      .without_decay(undecayed);
}

template <class Base> struct RecurrentTraining : Base {
  static constexpr std::int64_t Hidden = Base::hidden, Memory = Base::Memory, Places = Base::Places;

  /// Returns the attention weights of each location, [batch, 1, Places].
  constexpr auto look(const auto &state, const kiln::tensor auto &keys) const {
    return this->attention.weights(kiln::reshape<batch, 1, Hidden>(std::get<0>(state)), keys);
  }
  /// Returns [longest, batch, Width]: a loop iteration processes one word of each sentence.
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

  /// Hard attention by REINFORCE (Xu et al. 2015, 4.1): a location is sampled for each word; the gradient of its log
  /// probability is weighted by the difference between the word's log likelihood and a running mean, plus a small
  /// entropy term.
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
    auto counts = kiln::sum(hot);                                            // [longest, batch]: 1, or 0 for padding
    auto likelihood = kiln::sum(kiln::log_softmax(this->head(parts)) * hot); // log likelihood
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

/// Returns the entry `train`, which minimises `loss`, and `evaluate`, which returns it for held-out data.
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
