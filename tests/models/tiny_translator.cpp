// SPDX-License-Identifier: Apache-2.0
// Entries that share weights and states: a decoder that continues token by token next to one over all tokens, and a
// state that is replaced.
#include <kiln/generator.h>

inline constexpr kiln::Dim S{"source_tokens", 1, 24}, T{"tokens", 1, 40}, C{"context", T, 40};

struct Translator : kiln::Model {
  static constexpr std::int64_t vocabulary = 37, width = 48, hidden = 80;
  static constexpr int heads = 3;

  kiln::Embedding<vocabulary, width> source_table{"source"}, target_table{"target"};
  kiln::Embedding<C.max(), width> places{"places"};
  kiln::Stack<2, kiln::EncoderBlock<width, heads, hidden>> encoder{"encoder"};
  kiln::Stack<3, kiln::DecoderBlock<width, heads, hidden>> decoder{"decoder"};

  constexpr auto forward(kiln::Tensor<kiln::i32, S> source, kiln::Tensor<kiln::i32, T> target) const {
    auto x = target_table(target) + places(kiln::positions(target));
    return kiln::logits(decoder(x, encoder(source_table(source))), target_table);
  }
  constexpr auto encode(kiln::Tensor<kiln::i32, S> source) const {
    return decoder(encoder(source_table(source)), kiln::remember);
  }
  constexpr auto step(kiln::Tensor<kiln::i32, T> target) const {
    auto x = target_table(target) + places(kiln::positions_in<C>(target));
    return kiln::logits(decoder(x, kiln::remembered<S>, kiln::cached<C>), target_table);
  }
  /// Returns the sum of the inputs of all calls so far, and the sum before this call.
  constexpr auto count(kiln::Tensor<kiln::f32, 5, 3> x) const {
    kiln::State<kiln::f32, 5, 3> total("total");
    auto before = total.read(x);
    auto sum = before + x;
    total.store(sum);
    return kiln::outputs(sum, before);
  }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("forward", &Translator::forward, {"source", "target"}, {"logits"}),
                      kiln::entry("encode", &Translator::encode, {"source"}, {"memory"}),
                      kiln::entry("step", &Translator::step, {"target"}, {"logits"}),
                      kiln::entry("count", &Translator::count, {"x"}, {"sum", "before"})};
  }
};

KILN_MODEL(tiny_translator, Translator)
