// SPDX-License-Identifier: Apache-2.0
//
// Whisper (Radford et al. 2022) with the tensor names of its published checkpoints: an encoder of log-mel frames after
// two convolutions, and a decoder that generates the transcript.
#pragma once

#include "kiln/dsl.h"

namespace whisper {

/// The layers of the encoder or the decoder.
struct Tower {
  std::int64_t layers;
  int heads;
  std::int64_t hidden; // width of the MLPs
};

struct Shape {
  std::int64_t vocabulary, width;
  std::int64_t bins; // frequency bins of a frame
  Tower encoder, decoder;
  std::int64_t source; // rows of the encoder's result, each for two frames
  std::int64_t target; // maximum length of the text
};

template <Shape S, Tower T> struct Attention : kiln::Layer<Attention<S, T>> {
  using kiln::Layer<Attention>::Layer;
  kiln::Linear<S.width, S.width> q_proj{"q_proj"}, v_proj{"v_proj"}, out_proj{"out_proj"};
  kiln::Linear<S.width, S.width, false> k_proj{"k_proj"};

  /// Self-attention; in the decoder with `kiln::cached`.
  constexpr auto forward(const kiln::tensor auto &x, const auto &options) const {
    return out_proj(kiln::attention<T.heads>(q_proj(x), k_proj(x), v_proj(x), options));
  }
  /// Stores keys and values of the encoder's rows, which the decoder reads afterwards.
  constexpr auto forward(const kiln::tensor auto &rows, const kiln::Remember &) const {
    Memory("memory_keys").template append<S.source>(k_proj(rows));
    Memory("memory_values").template append<S.source>(v_proj(rows));
    return rows;
  }
  template <kiln::Dim Rows> constexpr auto forward(const kiln::tensor auto &x, const kiln::Remembered<Rows> &) const {
    auto keys = Memory("memory_keys").template read<Rows>(x), values = Memory("memory_values").template read<Rows>(x);
    return out_proj(kiln::attention<T.heads>(q_proj(x), keys, values));
  }

private:
  using Memory = kiln::State<kiln::f32, S.source, S.width>;
};

/// The MLP at the end of a block, with its norm.
template <Shape S, Tower T> struct Ending {
  kiln::LayerNorm<S.width> norm{"final_layer_norm"};
  kiln::Linear<S.width, T.hidden> fc1{"fc1"};
  kiln::Linear<T.hidden, S.width> fc2{"fc2"};

  constexpr auto operator()(const kiln::tensor auto &x) const { return x + fc2(kiln::gelu(fc1(norm(x)))); }
};

template <Shape S> struct EncoderBlock {
  kiln::LayerNorm<S.width> before{"self_attn_layer_norm"};
  Attention<S, S.encoder> attention{"self_attn"};
  Ending<S, S.encoder> ending;

  constexpr auto forward(const kiln::tensor auto &x) const {
    return ending(x + attention(before(x), kiln::AttentionOptions<>{}));
  }
};

template <Shape S> struct DecoderBlock {
  kiln::LayerNorm<S.width> before{"self_attn_layer_norm"}, across{"encoder_attn_layer_norm"};
  Attention<S, S.decoder> attention{"self_attn"}, memory{"encoder_attn"};
  Ending<S, S.decoder> ending;

  constexpr auto forward(const kiln::tensor auto &rows, const kiln::Remember &remember) const {
    return memory(rows, remember);
  }
  constexpr auto forward(const kiln::tensor auto &x, const auto &cached, const auto &remembered) const {
    auto y = x + attention(before(x), cached);
    return ending(y + memory(across(y), remembered));
  }
};

/// Converts frames [bins, 2 * source] to rows [source, width]. The checkpoint contains their sinusoidal positions.
template <Shape S> struct Encoder : kiln::Layer<Encoder<S>> {
  using kiln::Layer<Encoder>::Layer;
  kiln::Conv1d<S.bins, S.width, 3, kiln::Conv1dOptions{.padding = 1}> conv1{"conv1"};
  kiln::Conv1d<S.width, S.width, 3, kiln::Conv1dOptions{.stride = 2, .padding = 1}> conv2{"conv2"};
  kiln::Embedding<S.source, S.width> embed_positions{"embed_positions"};
  kiln::Stack<S.encoder.layers, EncoderBlock<S>> layers{"layers"};
  kiln::LayerNorm<S.width> norm{"layer_norm"};

  constexpr auto forward(const kiln::tensor auto &frames) const {
    auto x = kiln::gelu(conv2(kiln::gelu(conv1(kiln::transpose<1, 0>(frames)))));
    return norm(layers(x + embed_positions.weight(frames)));
  }
};

/// The decoder. Its result is the last row of the context.
template <Shape S> struct Decoder : kiln::Layer<Decoder<S>> {
  using kiln::Layer<Decoder>::Layer;
  kiln::Embedding<S.vocabulary, S.width> embed_tokens{"embed_tokens"};
  kiln::Embedding<S.target, S.width> embed_positions{"embed_positions"};
  kiln::Stack<S.decoder.layers, DecoderBlock<S>> layers{"layers"};
  kiln::LayerNorm<S.width> norm{"layer_norm"};

  constexpr auto forward(const kiln::tensor auto &rows, const kiln::Remember &remember) const {
    return layers(rows, remember);
  }
  template <kiln::Dim Context>
  constexpr auto forward(const kiln::tensor auto &tokens, const kiln::Cached<Context> &cached) const {
    auto x = embed_tokens(tokens) + embed_positions(kiln::positions_in<Context>(tokens));
    return norm(kiln::last<0, 1>(layers(x, cached, kiln::remembered<S.source>)));
  }
};

/// `encode` reads a window of sound and stores its keys and values for the decoder's layers; `prefill` appends tokens
/// to the text and returns the logits of the next token. `decode` is `prefill` of one token.
template <Shape S> struct Whisper : kiln::Model {
  static constexpr kiln::Dim tokens{"tokens", 1, S.target}, context{"context", tokens, S.target};
  Encoder<S> encoder{"model.encoder"};
  Decoder<S> decoder{"model.decoder"};

  constexpr auto encode(kiln::Tensor<kiln::f32, S.bins, 2 * S.source> frames) const {
    return decoder(encoder(frames), kiln::remember);
  }
  constexpr auto extend(const kiln::tensor auto &x) const {
    return kiln::logits(decoder(x, kiln::cached<context>), decoder.embed_tokens);
  }
  constexpr auto prefill(kiln::Tensor<kiln::i32, tokens> x) const { return extend(x); }
  constexpr auto decode(kiln::Tensor<kiln::i32, 1> x) const { return extend(x); }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("encode", &Whisper::encode, {"frames"}, {"memory"}),
                      kiln::entry("prefill", &Whisper::prefill, {"tokens"}, {"logits"}),
                      kiln::entry("decode", &Whisper::decode, {"token"}, {"logits"})};
  }
};

} // namespace whisper
