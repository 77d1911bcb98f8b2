// SPDX-License-Identifier: Apache-2.0
//
// BERT (Devlin et al. 2018) and RoBERTa (Liu et al. 2019) under the tensor names of their checkpoints: post-norm, erf
// GELU, padding by lengths, a pooler, or a head that predicts masked words.
#pragma once

#include "kiln/dsl.h"

namespace specs {

inline constexpr kiln::Dim bert_batch{"batch", 1, 8}, bert_tokens{"tokens", 1, 512};

struct BertShape {
  std::int64_t vocabulary, layers, width;
  int heads;
  std::int64_t segments = 2;       // rows of the segment table; 0: no table
  std::int64_t first_position = 0; // the row of the first token's position
  std::int64_t positions = 512;
  std::int64_t hidden = 4 * width; // of the MLPs
  kiln::Activation activation = kiln::Activation::gelu;
  double epsilon = 1e-12; // last: clang 22 corrupts members after a double in a template argument
};
inline constexpr BertShape bert_base{30522, 12, 768, 12}, bert_large{30522, 24, 1024, 16};
/// Returns a shape of RoBERTa.
constexpr BertShape roberta_shape(std::int64_t vocabulary, std::int64_t layers, std::int64_t width, int heads) {
  return {.vocabulary = vocabulary,
          .layers = layers,
          .width = width,
          .heads = heads,
          .segments = 1,
          .first_position = 2,
          .epsilon = 1e-5};
}
inline constexpr BertShape roberta_base = roberta_shape(50265, 12, 768, 12),
                           roberta_large = roberta_shape(50265, 24, 1024, 16);

using BertIds = kiln::Tensor<kiln::i32, bert_batch, bert_tokens>;
using BertLengths = kiln::Tensor<kiln::i32, bert_batch>;

template <BertShape S> struct BertEmbeddings : kiln::Layer<BertEmbeddings<S>> {
  using kiln::Layer<BertEmbeddings>::Layer;
  kiln::Embedding<S.vocabulary, S.width> word{"word_embeddings"};
  kiln::Embedding<S.first_position + S.positions, S.width> position{"position_embeddings"};
  kiln::Embedding<S.segments, S.width> token_type{"token_type_embeddings"};
  kiln::LayerNorm<S.width> norm{"LayerNorm", S.epsilon};

  constexpr auto forward(const kiln::tensor auto &tokens, const kiln::tensor auto &segments) const {
    return norm(placed(tokens) + token_type(segments));
  }
  /// Embeds tokens that are all in the first segment.
  constexpr auto forward(const kiln::tensor auto &tokens) const {
    if constexpr (S.segments == 0)
      return norm(placed(tokens));
    else if constexpr (S.segments == 1)
      return norm(placed(tokens) + token_type.weight(tokens));
    else
      return norm(placed(tokens) + kiln::slice<0, 0, 1>(token_type.weight(tokens)));
  }

private:
  constexpr auto placed(const kiln::tensor auto &tokens) const {
    if constexpr (S.first_position == 0)
      return word(tokens) + position(kiln::positions(tokens));
    else
      return word(tokens) + position(kiln::positions(tokens) + S.first_position);
  }
};

template <BertShape S> struct BertLayer {
  kiln::Linear<S.width, S.width> query{"attention.self.query"}, key{"attention.self.key"},
      value{"attention.self.value"};
  kiln::Linear<S.width, S.width> attended{"attention.output.dense"};
  kiln::LayerNorm<S.width> attended_norm{"attention.output.LayerNorm", S.epsilon};
  kiln::Linear<S.width, S.hidden> intermediate{"intermediate.dense"};
  kiln::Linear<S.hidden, S.width> output{"output.dense"};
  kiln::LayerNorm<S.width> output_norm{"output.LayerNorm", S.epsilon};

  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &lengths) const {
    auto y = kiln::attention<S.heads>(query(x), key(x), value(x), kiln::lengths(lengths));
    auto z = attended_norm(attended(y) + x);
    return output_norm(output(kiln::activate<S.activation>(intermediate(z))) + z);
  }
};

/// Shared by the models below: rows of [batch, tokens, width].
template <BertShape S> struct BertRows {
  BertEmbeddings<S> embeddings{"embeddings"};
  kiln::Stack<S.layers, BertLayer<S>> layer{"encoder.layer"};

  constexpr auto rows(const kiln::tensor auto &lengths, const kiln::tensor auto &...tokens) const {
    return layer(embeddings(tokens...), lengths);
  }
};

/// The encoder without a head, with its pooler.
template <BertShape S> struct Bert : kiln::Model, BertRows<S> {
  static constexpr kiln::Names inputs{"tokens", "segments", "lengths"}, outputs{"hidden", "pooled"};
  kiln::Linear<S.width, S.width> pooler{"pooler.dense"};

  constexpr auto forward(BertIds tokens, BertIds segments, BertLengths lengths) const {
    auto hidden = this->rows(lengths, tokens, segments);
    auto first = kiln::reshape<bert_batch, S.width>(kiln::slice<1, 0, 1>(hidden));
    return kiln::outputs(hidden, kiln::tanh(pooler(first)));
  }
};
using BertBase = Bert<bert_base>;
using BertLarge = Bert<bert_large>;

/// The encoder under a name prefix.
template <BertShape S> struct BertEncoder : kiln::Layer<BertEncoder<S>>, BertRows<S> {
  using kiln::Layer<BertEncoder>::Layer;

  constexpr auto forward(const kiln::tensor auto &lengths, const kiln::tensor auto &...tokens) const {
    return this->rows(lengths, tokens...);
  }
};

/// Logits of every word for every row, with the weights of the embedding.
template <BertShape S> struct MaskedWordHead : kiln::Layer<MaskedWordHead<S>> {
  constexpr MaskedWordHead(const char *name, const char *dense, const char *norm)
      : kiln::Layer<MaskedWordHead>(name), dense(dense), norm(norm, S.epsilon) {}
  kiln::Linear<S.width, S.width> dense;
  kiln::LayerNorm<S.width> norm;

  constexpr auto forward(const kiln::tensor auto &hidden, const BertEmbeddings<S> &embeddings) const {
    auto bias = kiln::parameter<kiln::f32, S.vocabulary>(hidden, "bias");
    return kiln::linear(norm(kiln::activate<S.activation>(dense(hidden))), embeddings.word.weight(hidden), bias);
  }
};

template <BertShape S> struct BertForMaskedWords : kiln::Model {
  static constexpr kiln::Names inputs{"tokens", "segments", "lengths"}, outputs{"logits"};
  BertEncoder<S> bert{"bert"};
  MaskedWordHead<S> head{"cls.predictions", "transform.dense", "transform.LayerNorm"};

  constexpr auto forward(BertIds tokens, BertIds segments, BertLengths lengths) const {
    return head(bert(lengths, tokens, segments), bert.embeddings);
  }
};

template <BertShape S> struct RobertaForMaskedWords : kiln::Model {
  static constexpr kiln::Names inputs{"tokens", "lengths"}, outputs{"logits"};
  BertEncoder<S> roberta{"roberta"};
  MaskedWordHead<S> head{"lm_head", "dense", "layer_norm"};

  constexpr auto forward(BertIds tokens, BertLengths lengths) const {
    return head(roberta(lengths, tokens), roberta.embeddings);
  }
};

} // namespace specs
