// SPDX-License-Identifier: Apache-2.0
// Batched entries: a decoder with KV caches and a state that is replaced, and an encoder without states.
#include <kiln/generator.h>

inline constexpr kiln::Dim T{"tokens", 1, 24}, C{"context", T, 40};

struct Batches : kiln::Model {
  static constexpr std::int64_t vocabulary = 61, width = 48, hidden = 80;
  static constexpr int heads = 3, most = 7;
  using Block = kiln::EncoderBlock<width, heads, hidden>;

  kiln::Embedding<vocabulary, width> table{"table"};
  kiln::Embedding<C.max(), width> places{"places"};
  kiln::Stack<2, Block> decoder{"decoder"};
  Block encoder{"encoder"};

  /// Returns the logits of the last token, to which all calls so far contribute, and the outputs of the layers.
  constexpr auto extend(const kiln::tensor auto &tokens) const {
    auto x = decoder(table(tokens) + places(kiln::positions_in<C>(tokens)), kiln::cached<C>);
    kiln::State<kiln::f32, 1, width> mood("mood");
    auto last = kiln::last<0, 1>(x);
    auto now = mood.read(x) * 0.5f + last;
    mood.store(now);
    return kiln::outputs(kiln::logits(now, table), x);
  }
  constexpr auto prefill(kiln::Tensor<kiln::i32, T> tokens) const { return extend(tokens); }
  constexpr auto decode(kiln::Tensor<kiln::i32, 1> token) const { return std::get<0>(extend(token)); }
  constexpr auto encode(kiln::Tensor<kiln::i32, T> tokens) const { return encoder(table(tokens)); }
  /// Each sequence has two rows of x; all sequences share the table.
  constexpr auto pair(kiln::Tensor<kiln::f32, 2, width> x) const {
    return kiln::outputs(kiln::logits(x, table), kiln::softmax<0>(x), kiln::concat<0>(x, x));
  }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("prefill", &Batches::prefill, {"tokens"}, {"logits", "hidden"}).batched(most),
                      kiln::entry("decode", &Batches::decode, {"token"}, {"logits"}).batched(most),
                      kiln::entry("encode", &Batches::encode, {"tokens"}, {"memory"}).batched(most),
                      kiln::entry("pair", &Batches::pair, {"x"}, {"scores", "weights", "twice"}).batched(most)};
  }
};

KILN_MODEL(batches, Batches)
