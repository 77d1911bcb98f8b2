// SPDX-License-Identifier: Apache-2.0
//
// BERT (Devlin et al. 2018) under the names of its published checkpoints: post-norm, erf GELU, padding by lengths,
// pooler.
#pragma once

#include "kiln/dsl.h"

namespace specs {

inline constexpr kiln::Dim bert_batch{"batch", 1, 8}, bert_tokens{"tokens", 1, 512};
inline constexpr double bert_epsilon = 1e-12;

template <std::int64_t Vocabulary, std::int64_t Width>
struct BertEmbeddings : kiln::Layer<BertEmbeddings<Vocabulary, Width>> {
  using kiln::Layer<BertEmbeddings>::Layer;
  kiln::Embedding<Vocabulary, Width> word{"word_embeddings"};
  kiln::Embedding<512, Width> position{"position_embeddings"};
  kiln::Embedding<2, Width> token_type{"token_type_embeddings"};
  kiln::LayerNorm<Width> norm{"LayerNorm", bert_epsilon};

  constexpr auto forward(const kiln::tensor auto &tokens, const kiln::tensor auto &segments) const {
    return norm(word(tokens) + position(kiln::positions(tokens)) + token_type(segments));
  }
};

template <std::int64_t Width, int Heads> struct BertLayer {
  kiln::Linear<Width, Width> query{"attention.self.query"}, key{"attention.self.key"}, value{"attention.self.value"};
  kiln::Linear<Width, Width> attended{"attention.output.dense"};
  kiln::LayerNorm<Width> attended_norm{"attention.output.LayerNorm", bert_epsilon};
  kiln::Linear<Width, 4 * Width> intermediate{"intermediate.dense"};
  kiln::Linear<4 * Width, Width> output{"output.dense"};
  kiln::LayerNorm<Width> output_norm{"output.LayerNorm", bert_epsilon};

  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &lengths) const {
    auto y = kiln::attention<Heads>(query(x), key(x), value(x), kiln::lengths(lengths));
    auto z = attended_norm(attended(y) + x);
    return output_norm(output(kiln::gelu(intermediate(z))) + z);
  }
};

template <std::int64_t Layers, std::int64_t Width, int Heads> struct Bert : kiln::Model {
  static constexpr kiln::Names inputs{"tokens", "segments", "lengths"}, outputs{"hidden", "pooled"};
  BertEmbeddings<30522, Width> embeddings{"embeddings"};
  kiln::Stack<Layers, BertLayer<Width, Heads>> layer{"encoder.layer"};
  kiln::Linear<Width, Width> pooler{"pooler.dense"};

  using Ids = kiln::Tensor<kiln::i32, bert_batch, bert_tokens>;
  constexpr auto forward(Ids tokens, Ids segments, kiln::Tensor<kiln::i32, bert_batch> lengths) const {
    auto hidden = layer(embeddings(tokens, segments), lengths);
    auto first = kiln::reshape<bert_batch, Width>(kiln::slice<1, 0, 1>(hidden));
    return kiln::outputs(hidden, kiln::tanh(pooler(first)));
  }
};

using BertBase = Bert<12, 768, 12>;
using BertLarge = Bert<24, 1024, 16>;

} // namespace specs
