// SPDX-License-Identifier: Apache-2.0
//
// The training entries of the model of recurrent.h. Recurrent layers and loops iterate over the first axis.
#include "recurrent.h"
#include "training.h"
#include <kiln/generator.h>

struct RecurrentTraining : names::Recurrent {
  static constexpr kiln::Dim B = names::B;

  constexpr auto loss(kiln::Tensor<kiln::i32, B, S> source, kiln::Tensor<kiln::i32, B, T + 1> target) const {
    auto [steps, last] = read(kiln::transpose<1, 0>(source), names::lengths_of(source));
    auto mask = kiln::reshape<B, 1, S>((kiln::cast<kiln::f32>(kiln::less(0, source)) - 1) * 1e9);
    auto tokens = kiln::transpose<1, 0>(target);
    auto y = kiln::reshape<T, B, 1, width>(embed(kiln::slice<0, 0, T>(tokens)));
    auto h = kiln::reshape<B, 1, hidden>(last);
    auto [parts, seen] = write_all(y, h, kiln::transpose<1, 0, 2>(steps), mask);
    return names::loss_of(logits_of(kiln::reshape<T, B, features>(parts)), kiln::slice<0, 1, T>(tokens));
  }
  static constexpr auto entries() { return names::training_entries<RecurrentTraining>({"*bias*", "*score"}); }
};

KILN_MODEL(names_train, RecurrentTraining)
