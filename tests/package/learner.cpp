// SPDX-License-Identifier: Apache-2.0
// A model with what self-tests and headers must support besides plain entries: training with optimiser state, a state
// between calls, a batched entry, and an entry with more tensors than a method has parameters.
#include <kiln/generator.h>

inline constexpr kiln::Dim T{"tokens", 1, 6};

struct Learner : kiln::Model {
  kiln::Embedding<9, 8> words{"words"};
  kiln::Linear<8, 8> fc{"fc"};

  constexpr auto train(kiln::Tensor<kiln::i32, T> tokens, kiln::Tensor<kiln::f32, T, 8> x) const {
    return kiln::mse(fc(words(tokens)), x);
  }
  constexpr auto follow(kiln::Tensor<kiln::f32, T, 8> x) const {
    kiln::State<kiln::f32, 2, 8> last("last");
    auto rows = kiln::concat<0>(last.read(x), fc(x));
    last.store(kiln::last<0, 2>(rows));
    return kiln::attention<2>(fc(x), rows, rows);
  }
  using Row = kiln::Tensor<kiln::f32, 8>;
  constexpr auto mix(Row a, Row b, Row c, Row d, Row e, Row f, Row g, Row h) const {
    return fc(a + b + c + d + e + f + g + h);
  }

  static constexpr auto entries() {
    return std::tuple{
        kiln::train("train", &Learner::train, {"tokens", "x"}, {"loss"}, kiln::AdamW{}).clipped(1),
        kiln::entry("follow", &Learner::follow, {"x"}, {"y"}).batched(3),
        kiln::entry("mix", &Learner::mix, {"a", "b", "c", "d", "e", "f", "g", "h"}, {"y"}),
    };
  }
};

KILN_MODEL(learner, Learner)
