// SPDX-License-Identifier: Apache-2.0
//
// A small decoder with queries, keys and values in one weight and fewer key heads than query heads (grouped-query
// attention). The weight is stored [out, in], or [in, out] as in GPT-2. The model is trained, and decodes.
#include <kiln/dsl.h>
#include <kiln/generator.h>

namespace {

using kiln::WeightOrder;

constexpr std::int64_t vocabulary = 509, width = 64, heads = 8, shared = 4, hidden = 96, steps = 12;
constexpr std::int64_t keys = width * shared / heads;
constexpr kiln::Dim B{"batch", 1, 4}, C{"context", 1, 16};

template <WeightOrder Order> struct Block : kiln::Layer<Block<Order>> {
  using kiln::Layer<Block>::Layer;
  constexpr auto forward(const kiln::tensor auto &x, auto how) const {
    auto joint = query_key_value(norm1(x));
    auto query = kiln::slice<-1, 0, width>(joint);
    auto key = kiln::slice<-1, width, keys>(joint), value = kiln::slice<-1, width + keys, keys>(joint);
    auto z = x + output(kiln::attention<heads, shared>(query, key, value, how));
    return z + down(kiln::gelu(up(norm2(z))));
  }
  kiln::RmsNorm<width> norm1{"norm1"}, norm2{"norm2"};
  kiln::Linear<width, width + 2 * keys, true, Order> query_key_value{"query_key_value"};
  kiln::Linear<width, width, true, Order> output{"output"};
  kiln::Linear<width, hidden, true, Order> up{"up"};
  kiln::Linear<hidden, width, true, Order> down{"down"};
};

struct Joint : kiln::Model {
  using Words = kiln::Tensor<kiln::i32, B, steps>;
  kiln::Embedding<vocabulary, width> words{"words"};
  kiln::Stack<2, Block<WeightOrder::out_in>> blocks{"blocks"};
  Block<WeightOrder::in_out> last{"last"};
  kiln::LayerNorm<width> norm{"norm"};

  constexpr auto logits(const kiln::tensor auto &tokens, auto how) const {
    return kiln::logits(norm(last(blocks(words(tokens), how), how)), words);
  }
  constexpr auto loss(Words tokens, Words targets) const {
    return kiln::cross_entropy(logits(tokens, kiln::causal), targets);
  }
  constexpr auto decode(kiln::Tensor<kiln::i32, 1> token) const { return logits(token, kiln::cached<C>); }

  static constexpr auto entries() {
    return std::tuple{kiln::train("train", &Joint::loss, {"tokens", "targets"}, {"loss"}, kiln::AdamW{}).clipped(0.5),
                      kiln::entry("evaluate", &Joint::loss, {"tokens", "targets"}, {"loss"}),
                      kiln::entry("decode", &Joint::decode, {"token"}, {"logits"})};
  }
};

} // namespace

KILN_MODEL(joint, Joint)
