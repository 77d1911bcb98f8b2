// SPDX-License-Identifier: Apache-2.0
// An extent whose name is not a C identifier: must not compile to a library.
#include <kiln/generator.h>

inline constexpr kiln::Dim rows{"my rows", 1, 4};

struct Spaced : kiln::Model {
  constexpr auto forward(kiln::Tensor<kiln::f32, rows> x) const { return x * 2.0; }
};

KILN_MODEL(spaced, Spaced)
