// SPDX-License-Identifier: Apache-2.0
// An encoder and a decoder block, post-norm (Vaswani et al. 2017) and pre-norm.
#include <kiln/generator.h>

inline constexpr kiln::Dim B{"batch", 1, 4}, T{"tokens", 1, 96}, S{"source_tokens", 1, 80};

struct TransformerBlocks : kiln::Model {
  static constexpr std::int64_t width = 72, hidden = 4 * width;
  static constexpr kiln::BlockOptions post{.norm = kiln::NormOrder::post, .activation = kiln::Activation::relu}, pre{};
  using Rows = kiln::Tensor<kiln::f32, B, T, width>;
  using Memory = kiln::Tensor<kiln::f32, B, S, width>;
  using Lengths = kiln::Tensor<kiln::i32, B>;

  kiln::EncoderBlock<width, 6, hidden, post> post_encoder{"post_encoder"};
  kiln::EncoderBlock<width, 6, hidden, pre> pre_encoder{"pre_encoder"};
  kiln::DecoderBlock<width, 6, hidden, post> post_decoder{"post_decoder"};
  kiln::DecoderBlock<width, 6, hidden, pre> pre_decoder{"pre_decoder"};

  constexpr auto encode_post(Rows x, Lengths n) const { return post_encoder(x, kiln::lengths(n)); }
  constexpr auto encode_pre(Rows x, Lengths n) const { return pre_encoder(x, kiln::lengths(n)); }
  constexpr auto decode_post(Rows x, Memory memory) const { return post_decoder(x, memory); }
  constexpr auto decode_pre(Rows x, Memory memory) const { return pre_decoder(x, memory); }

  static constexpr auto entries() {
    using Self = TransformerBlocks;
    return std::tuple{kiln::entry("encode_post", &Self::encode_post, {"x", "lengths"}, {"y"}),
                      kiln::entry("encode_pre", &Self::encode_pre, {"x", "lengths"}, {"y"}),
                      kiln::entry("decode_post", &Self::decode_post, {"x", "memory"}, {"y"}),
                      kiln::entry("decode_pre", &Self::decode_pre, {"x", "memory"}, {"y"})};
  }
};

KILN_MODEL(transformer_blocks, TransformerBlocks)
