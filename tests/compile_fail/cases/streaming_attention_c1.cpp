// SPDX-License-Identifier: Apache-2.0
//
// Rows before a chunk that are no chunks.
// expect: kiln: streaming attention: unsuitable chunk or rows before it; expected a chunk of one row or more, and a multiple of it before it [streaming_attention_c1]
#include "case.h"
using namespace kiln;
struct M : Model {
  StreamingAttention<12, 3, 4, 6> attend{"attend"};
  constexpr auto forward(Tensor<f32, 4 * T, 12> x) const { return attend(x); }
};
static_assert(parameters<M>() >= 0);
