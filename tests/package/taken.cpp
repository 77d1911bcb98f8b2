// SPDX-License-Identifier: Apache-2.0
// An entry with the name of a function that every library has: must not compile to a library.
#include <kiln/generator.h>

struct Taken : kiln::Model {
  constexpr auto twice(kiln::Tensor<kiln::f32, 3> x) const { return x * 2.0; }
  static constexpr auto entries() { return std::tuple{kiln::entry("create", &Taken::twice)}; }
};

KILN_MODEL(taken, Taken)
