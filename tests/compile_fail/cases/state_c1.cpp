// SPDX-License-Identifier: Apache-2.0
//
// A state is used in the body of a scan.
// expect: forward: state: used outside its owner or in a loop; expected uses in the entry or the stack that owns it, outside of loops inside of that, got s [state_c1] (state_c1.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const {
    return scan(sum<0>(x), x, [](auto h, auto here) { return std::pair{h + State<f32, 8>("s").read(here), h}; }).first;
  }
};
static_assert(parameters<M>() >= 0);
