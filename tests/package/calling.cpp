// SPDX-License-Identifier: Apache-2.0
// An input with the name of a parameter that every generated function has; in the generated code it is called "call_".
#include <kiln/generator.h>

struct Calling : kiln::Model {
  static constexpr kiln::Names inputs{"call"}, outputs{"y"};
  constexpr auto forward(kiln::Tensor<kiln::f32, 3> x) const { return x * 2.0; }
};

KILN_MODEL(calling, Calling)
