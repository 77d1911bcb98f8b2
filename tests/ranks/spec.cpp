// SPDX-License-Identifier: Apache-2.0
//
// A small decoder for tensor-parallel training: grouped-query attention with a norm per head, gates, an embedding table
// that is tied to the logits, and a layer that two entries use.
#include <kiln/dsl.h>
#include <kiln/generator.h>

namespace {

constexpr std::int64_t vocabulary = 509, width = 32, heads = 4, shared = 2, hidden = 48, steps = 12;
constexpr kiln::Dim B{"batch", 1, 4};

struct Block : kiln::Layer<Block> {
  using Layer::Layer;
  constexpr auto forward(const kiln::tensor auto &x) const {
    auto rows = norm1(x);
    auto q = query_norm(kiln::reshape<B, steps, heads, width / heads>(query(rows)));
    auto y = kiln::attention<heads, shared>(kiln::reshape<B, steps, width>(q), key(rows), value(rows), kiln::causal);
    auto z = x + output(y);
    auto inner = norm2(z);
    return z + down(kiln::silu(gate(inner)) * up(inner));
  }
  kiln::RmsNorm<width> norm1{"norm1"}, norm2{"norm2"};
  kiln::RmsNorm<width / heads> query_norm{"query_norm"};
  kiln::Linear<width, width> query{"query"};
  kiln::Linear<width, width * shared / heads, false> key{"key"};
  kiln::Linear<width, width * shared / heads> value{"value"};
  kiln::Linear<width, width> output{"output"};
  kiln::Linear<width, hidden, false> gate{"gate"}, up{"up"};
  kiln::Linear<hidden, width, true> down{"down"};
};

struct Decoder : kiln::Model {
  using Words = kiln::Tensor<kiln::i32, B, steps>;
  kiln::Embedding<vocabulary, width> words{"words"};
  kiln::Stack<2, Block> blocks{"blocks"};
  kiln::LayerNorm<width> norm{"norm"};

  constexpr auto logits(Words tokens) const { return kiln::logits(norm(blocks(words(tokens))), words); }
  constexpr auto loss(Words tokens, Words targets) const { return kiln::cross_entropy(logits(tokens), targets); }
  /// With all options of the loss, and with soft-capped logits (Gemma Team 2024, section 2).
  constexpr auto smoothed(Words tokens, Words targets) const {
    constexpr kiln::CrossEntropyOptions options{.ignore = 7, .label_smoothing = 0.1};
    return kiln::cross_entropy<options>(2 * kiln::tanh(logits(tokens) / 2), targets);
  }
  static constexpr auto entries() {
    // With a small epsilon, the update of a weight whose gradient is almost 0 would be determined by rounding.
    return std::tuple{
        kiln::train("train", &Decoder::loss, {"tokens", "targets"}, {"loss"}, kiln::AdamW{.epsilon = 1e-3})
            .clipped(0.5),
        kiln::train("train_again", &Decoder::smoothed, {"tokens", "targets"}, {"loss"}, kiln::Sgd{}).checkpointed(),
        kiln::entry("evaluate", &Decoder::loss, {"tokens", "targets"}, {"loss"})};
  }
};

} // namespace

KILN_MODEL(decoder, Decoder)
