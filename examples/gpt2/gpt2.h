// SPDX-License-Identifier: Apache-2.0
//
// GPT-2 (Radford et al. 2019) under the names of its published checkpoints: Conv1D weights [in, out], one projection
// for Q, K and V, tanh-form GELU, tied logits.
#pragma once

#include "kiln/dsl.h"

namespace specs {

inline constexpr kiln::Dim tokens_1024{"tokens", 1, 1024};

template <std::int64_t In, std::int64_t Out> using Conv1D = kiln::Linear<In, Out, true, kiln::WeightOrder::in_out>;

template <std::int64_t Width, int Heads> struct Gpt2Attention : kiln::Layer<Gpt2Attention<Width, Heads>> {
  using kiln::Layer<Gpt2Attention>::Layer;
  Conv1D<Width, 3 * Width> c_attn{"c_attn"};
  Conv1D<Width, Width> c_proj{"c_proj"};

  constexpr auto forward(const kiln::tensor auto &x) const {
    auto qkv = c_attn(x);
    auto q = kiln::slice<-1, 0, Width>(qkv);
    auto k = kiln::slice<-1, Width, Width>(qkv);
    auto v = kiln::slice<-1, 2 * Width, Width>(qkv);
    return c_proj(kiln::attention<Heads>(q, k, v, kiln::causal));
  }
};

template <std::int64_t Width> struct Gpt2Mlp : kiln::Layer<Gpt2Mlp<Width>> {
  using kiln::Layer<Gpt2Mlp>::Layer;
  Conv1D<Width, 4 * Width> c_fc{"c_fc"};
  Conv1D<4 * Width, Width> c_proj{"c_proj"};

  constexpr auto forward(const kiln::tensor auto &x) const { return c_proj(kiln::gelu_tanh(c_fc(x))); }
};

template <std::int64_t Width, int Heads> struct Gpt2Block {
  kiln::LayerNorm<Width> ln_1{"ln_1"}, ln_2{"ln_2"};
  Gpt2Attention<Width, Heads> attn{"attn"};
  Gpt2Mlp<Width> mlp{"mlp"};

  constexpr auto forward(const kiln::tensor auto &x) const {
    auto y = x + attn(ln_1(x));
    return y + mlp(ln_2(y));
  }
};

template <std::int64_t Layers, std::int64_t Width, int Heads, kiln::Dim Tokens = tokens_1024,
          std::int64_t Vocabulary = 50257>
struct Gpt2 : kiln::Model {
  static constexpr kiln::Names inputs{"tokens"}, outputs{"logits"};
  kiln::Embedding<Vocabulary, Width> wte{"wte"};
  kiln::Embedding<Tokens.max(), Width> wpe{"wpe"};
  kiln::Stack<Layers, Gpt2Block<Width, Heads>> h{"h"};
  kiln::LayerNorm<Width> ln_f{"ln_f"};

  constexpr auto forward(kiln::Tensor<kiln::i32, Tokens> tokens) const {
    auto x = wte(tokens) + wpe(kiln::positions(tokens));
    return kiln::logits(ln_f(h(x)), wte);
  }
};

using Gpt2Small = Gpt2<12, 768, 12>;
using Gpt2Medium = Gpt2<24, 1024, 16>;
using Gpt2Large = Gpt2<36, 1280, 20>;
using Gpt2Xl = Gpt2<48, 1600, 25>;

} // namespace specs
