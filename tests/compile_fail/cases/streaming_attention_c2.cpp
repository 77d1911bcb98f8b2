// SPDX-License-Identifier: Apache-2.0
//
// A call of any number of rows.
// expect: attend: streaming attention: the stream is not in whole chunks; expected [a multiple of 4, width], got f32[tokens 1..64, 12] [streaming_attention_c2] (streaming_attention_c2.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  StreamingAttention<12, 3, 4, 8> attend{"attend"};
  constexpr auto forward(Tensor<f32, T, 12> x) const { return attend(x); }
};
static_assert(parameters<M>() >= 0);
