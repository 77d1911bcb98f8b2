// SPDX-License-Identifier: Apache-2.0
//
// A weight that is large enough for forms of its kernel for fewer rows, on a GPU.
#pragma once

#include "kiln/dsl.h"

namespace specs {

struct RowForms : kiln::Model {
  static constexpr kiln::Dim rows{"rows", 1, 4096};
  static constexpr std::int64_t in = 1536, out = 192;

  kiln::Linear<in, out, true, kiln::WeightOrder::out_in, kiln::bf16> linear{"linear"};

  constexpr auto forward(kiln::Tensor<kiln::bf16, rows, in> x) const { return kiln::relu(linear(x)); }
  static constexpr auto entries() { return std::tuple{kiln::entry("forward", &RowForms::forward, {"x"}, {"y"})}; }
};

} // namespace specs
