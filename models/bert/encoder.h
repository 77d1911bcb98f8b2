// SPDX-License-Identifier: Apache-2.0
//
// BERT-like models with the inputs of a program: tokens and lengths, all in the first segment. RoBERTa and DistilBERT
// have the same structure under names that a checkpoint's rules map to these.
#pragma once

#include "bert.h"

namespace specs {

template <BertShape S> inline constexpr kiln::Dim encoder_tokens{"tokens", 1, S.positions};
template <BertShape S> using EncoderIds = kiln::Tensor<kiln::i32, bert_batch, encoder_tokens<S>>;

/// The vector of a text: its first row, or the mean of its rows.
enum class Pooling { first, mean };

template <BertShape S> constexpr auto first_row(const kiln::tensor auto &hidden) {
  return kiln::reshape<bert_batch, S.width>(kiln::slice<1, 0, 1>(hidden));
}

template <BertShape S> constexpr auto mean_of_rows(const kiln::tensor auto &hidden, const kiln::tensor auto &lengths) {
  auto counts = kiln::cast<kiln::f32>(kiln::less(kiln::positions<1>(hidden), kiln::reshape<bert_batch, 1>(lengths)));
  auto sums = kiln::sum<1>(hidden * kiln::reshape<bert_batch, encoder_tokens<S>, 1>(counts));
  return sums / kiln::cast<kiln::f32>(kiln::reshape<bert_batch, 1>(lengths));
}

/// Returns the rows of texts, and a vector for each text, of length 1 if `IsNormed`.
template <BertShape S, Pooling P, bool IsNormed> struct TextEmbedding : kiln::Model {
  static constexpr kiln::Names inputs{"tokens", "lengths"}, outputs{"hidden", "embedding"};
  BertEncoder<S> bert{"bert"};

  constexpr auto forward(EncoderIds<S> tokens, BertLengths lengths) const {
    auto hidden = bert(lengths, tokens);
    return kiln::outputs(hidden, normed(pooled(hidden, lengths)));
  }

private:
  static constexpr auto pooled(const kiln::tensor auto &hidden, const kiln::tensor auto &lengths) {
    if constexpr (P == Pooling::first)
      return first_row<S>(hidden);
    else
      return mean_of_rows<S>(hidden, lengths);
  }
  static constexpr auto normed(const kiln::tensor auto &x) {
    if constexpr (IsNormed)
      return kiln::l2_normalize<-1>(x);
    else
      return x;
  }
};

/// Returns logits of every word for every row.
template <BertShape S> struct MaskedWords : kiln::Model {
  static constexpr kiln::Names inputs{"tokens", "lengths"}, outputs{"logits"};
  BertEncoder<S> bert{"bert"};
  MaskedWordHead<S> head{"cls.predictions", "transform.dense", "transform.LayerNorm"};

  constexpr auto forward(EncoderIds<S> tokens, BertLengths lengths) const {
    return head(bert(lengths, tokens), bert.embeddings);
  }
};

/// Returns class logits for each text.
template <BertShape S, std::int64_t Classes, kiln::Activation Pooled> struct TextClasses : kiln::Model {
  static constexpr kiln::Names inputs{"tokens", "lengths"}, outputs{"logits"};
  BertEncoder<S> bert{"bert"};
  kiln::Linear<S.width, S.width> pooler{"pooler.dense"};
  kiln::Linear<S.width, Classes> classifier{"classifier"};

  constexpr auto forward(EncoderIds<S> tokens, BertLengths lengths) const {
    return classifier(kiln::activate<Pooled>(pooler(first_row<S>(bert(lengths, tokens)))));
  }
};

/// Returns class logits for each token.
template <BertShape S, std::int64_t Classes> struct TokenClasses : kiln::Model {
  static constexpr kiln::Names inputs{"tokens", "lengths"}, outputs{"logits"};
  BertEncoder<S> bert{"bert"};
  kiln::Linear<S.width, Classes> classifier{"classifier"};

  constexpr auto forward(EncoderIds<S> tokens, BertLengths lengths) const { return classifier(bert(lengths, tokens)); }
};

} // namespace specs
