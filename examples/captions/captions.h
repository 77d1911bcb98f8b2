// SPDX-License-Identifier: Apache-2.0
//
// Captions for mosaics of four images, by a recurrent network that attends to the image before each word (Xu et al.
// 2015) and by a Transformer.
#pragma once

#include "kiln/dsl.h"

namespace captions {

inline constexpr std::int64_t side = 56, words = 26, longest = 12; // start, and eleven words
inline constexpr kiln::Dim T{"words", 1, longest}, context{"context", T, longest};
using Image = kiln::Tensor<kiln::f32, side, side>;

/// Reshapes [..., side, side] to one channel; batch dimensions are first.
template <kiln::tensor X> constexpr auto with_channel(const X &image) {
  if constexpr (X::rank == 2)
    return kiln::reshape<side, side, 1>(image);
  else
    return kiln::reshape<X::shape[0], side, side, 1>(image);
}

/// Returns the rows [..., Grid * Grid, Width] of features [..., Grid, Grid, Width], each with its position embedding.
template <std::int64_t Grid, std::int64_t Width, kiln::tensor X> constexpr auto with_places(const X &features) {
  auto places = kiln::parameter<kiln::f32, Grid * Grid, Width>(features, "places");
  if constexpr (X::rank == 3)
    return kiln::reshape<Grid * Grid, Width>(features) + places;
  else
    return kiln::reshape<X::shape[0], Grid * Grid, Width>(features) + places;
}

/// 3 x 3 convolutions in the style of VGG, and a position embedding: [14 * 14, 64].
struct Convolved : kiln::Layer<Convolved> {
  using Layer::Layer;
  static constexpr std::int64_t grid = 14, places_count = grid * grid, width = 64;
  template <std::int64_t In, std::int64_t Out>
  using Conv = kiln::Conv2d<In, Out, 3, kiln::Conv2dOptions{.padding = 1}, false>;

  Conv<1, 16> conv0{"conv.0"};
  Conv<16, 16> conv1{"conv.1"};
  Conv<16, 32> conv2{"conv.2"};
  Conv<32, 32> conv3{"conv.3"};
  Conv<32, width> conv4{"conv.4"};
  Conv<width, width> conv5{"conv.5"};
  kiln::BatchNorm2d<16> norm0{"norm.0"}, norm1{"norm.1"};
  kiln::BatchNorm2d<32> norm2{"norm.2"}, norm3{"norm.3"};
  kiln::BatchNorm2d<width> norm4{"norm.4"}, norm5{"norm.5"};

  constexpr auto forward(const kiln::tensor auto &image) const {
    auto x = kiln::relu(norm0(conv0(with_channel(image))));
    auto half = kiln::max_pool2d<2>(kiln::relu(norm1(conv1(x))));
    auto y = kiln::relu(norm2(conv2(half)));
    auto quarter = kiln::max_pool2d<2>(kiln::relu(norm3(conv3(y))));
    auto z = kiln::relu(norm5(conv5(kiln::relu(norm4(conv4(quarter))))));
    return with_places<grid, width>(z);
  }
};

/// Patches of 7 x 7 pixels, and a position embedding: [8 * 8, 64].
struct Patched : kiln::Layer<Patched> {
  using Layer::Layer;
  static constexpr std::int64_t grid = 8, places_count = grid * grid, width = 64;
  kiln::Conv2d<1, width, 7, kiln::Conv2dOptions{.stride = 7}> projection{"projection"};

  constexpr auto forward(const kiln::tensor auto &image) const {
    return with_places<grid, width>(projection(with_channel(image)));
  }
};

/// Show, Attend and Tell: an LSTM whose initial state depends on the mean of the features. Attention is soft, a
/// weighted sum of all locations, or hard, the features of one sampled location (`glance`).
template <class Features, std::int64_t Width, std::int64_t Hidden, std::int64_t Score> struct Recurrent : kiln::Model {
  static constexpr std::int64_t Memory = Features::width, Places = Features::places_count, Grid = Features::grid;
  static constexpr std::int64_t hidden = Hidden;

  Features features{"features"};
  kiln::Linear<Memory, Hidden> first_h{"first_h"}, first_c{"first_c"};
  kiln::AdditiveAttention<Hidden, Memory, Score> attention{"attention"};
  kiln::Embedding<words, Width> embedding{"embedding"};
  kiln::LstmStep<Width + Memory, Hidden> cell{"cell"};
  kiln::Linear<Hidden + Memory + Width, words> head{"head"};

  /// The initial state, from the mean of the features, [1, Memory], or a row for each image of a batch.
  constexpr auto begin_from(const kiln::tensor auto &mean) const {
    return std::tuple{kiln::tanh(first_h(mean)), kiln::tanh(first_c(mean))};
  }
  constexpr auto begin(const kiln::tensor auto &memory) const {
    return begin_from(kiln::reshape<1, Memory>(kiln::mean<0>(memory)));
  }
  /// From the state before a word y [1, Width]: returns the next state, the inputs of the logits, the attention weights
  /// [1, Places].
  constexpr auto write(const kiln::tensor auto &y, const auto &state, const kiln::tensor auto &keys,
                       const kiln::tensor auto &memory) const {
    auto seen = attention.weights(std::get<0>(state), keys);
    auto [next, parts] = write(y, state, kiln::matmul(seen, memory));
    return std::tuple{next, parts, seen};
  }
  constexpr auto write(const kiln::tensor auto &y, const auto &state, const kiln::tensor auto &context) const {
    auto next = cell(kiln::concat<-1>(y, context), state);
    return std::pair{next, kiln::concat<-1>(std::get<0>(next), context, y)};
  }

  /// Processes all words of a sentence at once: logits of the next word, and attention weights before each word.
  constexpr auto forward(Image image, kiln::Tensor<kiln::i32, T> sentence) const {
    auto memory = features(image);
    auto keys = attention.keys(memory);
    auto step = [&](const auto &before, const auto &y) {
      auto [next, parts, seen] = write(kiln::reshape<1, Width>(y), before, keys, memory);
      return std::pair{next,
                       std::tuple{kiln::reshape<Hidden + Memory + Width>(parts), kiln::reshape<Grid, Grid>(seen)}};
    };
    auto [last, written] = kiln::scan(begin(memory), embedding(sentence), step);
    return kiln::outputs(head(std::get<0>(written)), std::get<1>(written));
  }

  // Word by word: the features stay in the arena.
  kiln::State<kiln::f32, 1, Hidden> h{"h"}, c{"c"};
  kiln::State<kiln::f32, Places, Score> kept_keys{"keys"};
  kiln::State<kiln::f32, Places, Memory> kept_memory{"memory"};

  constexpr auto look(Image image) const {
    auto memory = features(image);
    auto state = begin(memory);
    h.store(std::get<0>(state));
    c.store(std::get<1>(state));
    kept_keys.store(attention.keys(memory));
    kept_memory.store(memory);
    return memory;
  }
  constexpr auto step(kiln::Tensor<kiln::i32, 1> word) const {
    auto [next, parts, seen] =
        write(embedding(word), std::tuple{h.read(word), c.read(word)}, kept_keys.read(word), kept_memory.read(word));
    h.store(std::get<0>(next));
    c.store(std::get<1>(next));
    return kiln::outputs(head(parts), kiln::reshape<Grid, Grid>(seen));
  }
  /// A step with hard attention: independent numbers in (0, 1) sample the location.
  constexpr auto glance(kiln::Tensor<kiln::i32, 1> word, kiln::Tensor<kiln::f32, 1, Places> uniform) const {
    auto before = std::tuple{h.read(word), c.read(word)};
    auto seen = attention.weights(std::get<0>(before), kept_keys.read(word));
    auto place = kiln::gumbel_max(kiln::log(seen), uniform);
    auto [next, parts] = write(embedding(word), before, kiln::gather(kept_memory.read(word), place));
    h.store(std::get<0>(next));
    c.store(std::get<1>(next));
    return kiln::outputs(head(parts), place);
  }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("forward", &Recurrent::forward, {"image", "sentence"}, {"logits", "seen"}),
                      kiln::entry("look", &Recurrent::look, {"image"}, {"features"}),
                      kiln::entry("step", &Recurrent::step, {"word"}, {"logits", "seen"}),
                      kiln::entry("glance", &Recurrent::glance, {"word", "uniform"}, {"logits", "place"})};
  }
};

/// Features, a Transformer encoder and a decoder, which writes the sentence (Vaswani et al. 2017); pre-norm.
template <class Features, std::int64_t EncoderLayers, int Heads> struct Transformer : kiln::Model {
  static constexpr std::int64_t Width = Features::width, Hidden = 4 * Width, Places = Features::places_count;
  static constexpr std::int64_t Grid = Features::grid;

  Features features{"features"};
  kiln::Stack<EncoderLayers, kiln::EncoderBlock<Width, Heads, Hidden>> encoder{"encoder"};
  kiln::LayerNorm<Width> encoder_norm{"encoder_norm"}, decoder_norm{"decoder_norm"};
  kiln::Embedding<words, Width> embedding{"embedding"};
  kiln::DecoderBlock<Width, Heads, Hidden> decoder0{"decoder.0"}, decoder1{"decoder.1"};
  kiln::Linear<Width, words> head{"head"};

  constexpr auto remember(const kiln::tensor auto &image) const { return encoder_norm(encoder(features(image))); }
  constexpr auto embed(const kiln::tensor auto &sentence, const kiln::tensor auto &positions) const {
    return embedding(sentence) + kiln::sinusoidal<Width>(positions);
  }
  /// Returns the logits, and the attention weights of each location, averaged over all heads of both blocks.
  template <kiln::tensor X> constexpr auto write(const X &x, const auto &memory, const auto &own) const {
    auto [y, first] = decoder0.with_weights(x, memory, own);
    auto [z, second] = decoder1.with_weights(y, memory, own);
    constexpr kiln::Dim count = X::shape[0];
    return kiln::outputs(head(decoder_norm(z)),
                         kiln::reshape<count, Grid, Grid>(kiln::mean<0>(kiln::concat<0>(first, second))));
  }

  constexpr auto forward(Image image, kiln::Tensor<kiln::i32, T> sentence) const {
    return write(embed(sentence, kiln::positions(sentence)), remember(image), kiln::causal);
  }
  // Word by word: keys and values of the image and of the words so far stay in the arena.
  constexpr auto look(Image image) const { return decoder1(decoder0(remember(image), kiln::remember), kiln::remember); }
  constexpr auto step(kiln::Tensor<kiln::i32, 1> word) const {
    return write(embed(word, kiln::positions_in<context>(word)), kiln::remembered<Places>, kiln::cached<context>);
  }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("forward", &Transformer::forward, {"image", "sentence"}, {"logits", "seen"}),
                      kiln::entry("look", &Transformer::look, {"image"}, {"memory"}),
                      kiln::entry("step", &Transformer::step, {"word"}, {"logits", "seen"})};
  }
};

/// The trained models.
using TrainedRecurrent = Recurrent<Convolved, 32, 128, 64>;
using TrainedTransformer = Transformer<Convolved, 1, 4>;

} // namespace captions
