// SPDX-License-Identifier: Apache-2.0
//
// A decoder for fine-tuning: low-rank adapters on frozen weights, a training step for them, and entries that generate
// text with them. LLAMA_SHAPE is one of models/llama/shapes.h, which the build may select.
#include "models/llama/llama.h"
#include <kiln/generator.h>

#ifndef LLAMA_SHAPE
#define LLAMA_SHAPE king_james
#endif

namespace llama {

/// A projection with a trained low-rank adapter (Hu et al. 2021): W x + B A x * alpha / rank. B is initialised with
/// zeros. The names are those of the PEFT library's files.
template <std::int64_t In, std::int64_t Out> struct Adapted : kiln::Layer<Adapted<In, Out>> {
  using kiln::Layer<Adapted>::Layer;
  static constexpr std::int64_t rank = 8;
  static constexpr double alpha = 16;
  kiln::Linear<In, rank, false> down{"lora_A"};
  kiln::Linear<rank, Out, false> up{"lora_B"};

  constexpr auto forward(const kiln::tensor auto &x) const {
    return kiln::linear(x, kiln::parameter<kiln::f32, Out, In>(x, "weight")) + up(down(x)) * (alpha / rank);
  }
};

template <Shape S> struct Tuned : Writer<S, Adapted> {
  static constexpr kiln::Dim windows{"windows", 1, 4};
  using Windows = kiln::Tensor<kiln::i32, windows, S.context>;

  constexpr auto loss(Windows tokens, Windows targets) const {
    return kiln::cross_entropy(this->lm_head(this->model(tokens)), targets);
  }

  static constexpr auto entries() {
    return std::tuple{kiln::train("train", &Tuned::loss, {"tokens", "targets"}, {"loss"},
                                  kiln::AdamW{.beta2 = 0.98, .weight_decay = 0.05})
                          .clipped(1)
                          .frozen({"*_proj.weight", "*norm.weight", "*embed_tokens.weight", "lm_head.weight"}),
                      kiln::entry("evaluate", &Tuned::loss, {"tokens", "targets"}, {"loss"}),
                      kiln::entry("prefill", &Tuned::prefill, {"tokens"}, {"logits"}),
                      kiln::entry("decode", &Tuned::decode, {"token"}, {"logits"})};
  }
};

} // namespace llama

using Tuned = llama::Tuned<llama::LLAMA_SHAPE>;
KILN_MODEL(llama_lora, Tuned)
