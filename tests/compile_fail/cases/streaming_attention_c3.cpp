// SPDX-License-Identifier: Apache-2.0
//
// A mask next to the one of the beginning.
// expect: kiln: streaming attention: options with a mask or lengths; expected other options [streaming_attention_c3]
#include "case.h"
using namespace kiln;
struct M : Model {
  StreamingAttention<12, 3, 4, 8> attend{"attend"};
  constexpr auto forward(Tensor<f32, 4 * T, 12> x, Tensor<f32, 12> m) const { return attend(x, mask(m)); }
};
static_assert(parameters<M>() >= 0);
