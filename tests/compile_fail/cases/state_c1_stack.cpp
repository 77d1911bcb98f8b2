// SPDX-License-Identifier: Apache-2.0
//
// A stack with states is called in the body of a scan.
// expect: h.{}.keep: state: used outside its owner or in a loop; expected uses in the entry or the stack that owns it, outside of loops inside of that, got kept [state_c1] (state_c1_stack.cpp:11)
#include "case.h"
using namespace kiln;
struct Block : Layer<Block> {
  using Layer::Layer;
  State<f32, 4> kept{"kept"};
  constexpr auto forward(const tensor auto &x) const {
    kept.store(x);
    return x;
  }
};
struct Outer {
  Block keep{"keep"};
  constexpr auto forward(const tensor auto &x) const { return keep(x); }
};

struct M : Model {
  Stack<2, Outer> h{"h"};
  constexpr auto forward(Tensor<f32, T, 4> x) const {
    return scan(zeros<f32, 4>(x), x,
                [&](auto state, auto here) {
                  auto next = state + h(here);
                  return std::pair{next, next};
                })
        .second;
  }
};
static_assert(parameters<M>() >= 0);
