// SPDX-License-Identifier: Apache-2.0
//
// The example of "Coming from PyTorch" in dsl/SPEC.md: a tagger of tokens whose weights have PyTorch's names.
#include <kiln/generator.h>

inline constexpr kiln::Dim B{"batch", 1, 8}, T{"tokens", 1, 128};

/// Self-attention with the parameters of torch.nn.MultiheadAttention.
template <std::int64_t Width, int Heads> struct PackedAttention : kiln::Layer<PackedAttention<Width, Heads>> {
  using kiln::Layer<PackedAttention<Width, Heads>>::Layer;
  kiln::Linear<Width, Width> out_proj{"out_proj"};

  constexpr auto forward(const kiln::tensor auto &x) const {
    auto weight = kiln::parameter<kiln::f32, 3 * Width, Width>(x, "in_proj_weight");
    auto bias = kiln::parameter<kiln::f32, 3 * Width>(x, "in_proj_bias");
    auto all = kiln::linear(x, weight, bias);
    auto q = kiln::slice<-1, 0, Width>(all);
    auto k = kiln::slice<-1, Width, Width>(all);
    auto v = kiln::slice<-1, 2 * Width, Width>(all);
    return out_proj(kiln::attention<Heads>(q, k, v));
  }
};

struct Tagger : kiln::Model {
  static constexpr kiln::Names inputs{"tokens"}, outputs{"scores"};
  kiln::Embedding<1000, 64> embed{"embed"};
  kiln::Conv1d<64, 64, 5, kiln::Conv1dOptions{.padding = 2}> conv{"conv"};
  kiln::BatchNorm1d<64> bn{"bn"};
  PackedAttention<64, 4> attn{"attn"};
  kiln::Gru<64, 32, kiln::RecurrentOptions{.bidirectional = true}> gru{"gru"};
  kiln::LayerNorm<64> norm{"head.0"};
  kiln::Linear<64, 64> hidden{"head.1"};
  kiln::Linear<64, 9> tags{"head.3"};

  constexpr auto forward(kiln::Tensor<kiln::i32, B, T> tokens) const {
    auto x = kiln::relu(bn(conv(embed(tokens)))); // [batch, tokens, 64]: a signal needs no transpose
    x += attn(x);
    auto [y, last] = gru(kiln::transpose<1, 0, 2>(x)); // [tokens, batch, 64]: the layer loops over the first axis
    return tags(kiln::gelu(hidden(norm(x + kiln::transpose<1, 0, 2>(y)))));
  }
};

KILN_MODEL(tagger, Tagger)
