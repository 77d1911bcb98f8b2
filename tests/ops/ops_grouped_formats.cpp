// SPDX-License-Identifier: Apache-2.0
// Linears of groups of rows with weights of each storage format, next to the linear of all groups.
#include "dims.h"

struct GroupedFormats : kiln::Model {
  using X = kiln::Tensor<kiln::f32, T, 64>;
  using Ends = kiln::Tensor<kiln::i32, 3>;

  template <kiln::WeightType Type> static constexpr auto both(const X &x, const Ends &ends, const char *name) {
    auto weight = kiln::parameter<Type, 3 * 20, 64>(x, name);
    return kiln::outputs(kiln::grouped_linear(x, weight, ends), kiln::linear(x, weight));
  }
  constexpr auto f16(X x, Ends ends) const { return both<kiln::stored<kiln::f16>>(x, ends, "f16"); }
  constexpr auto bf16(X x, Ends ends) const { return both<kiln::stored<kiln::bf16>>(x, ends, "bf16"); }
  constexpr auto int8(X x, Ends ends) const { return both<kiln::int8>(x, ends, "int8"); }
  constexpr auto int4(X x, Ends ends) const { return both<kiln::int4<32>>(x, ends, "int4"); }
  constexpr auto int4_zero(X x, Ends ends) const { return both<kiln::int4_zero<64>>(x, ends, "int4_zero"); }
  constexpr auto fp8(X x, Ends ends) const { return both<kiln::fp8>(x, ends, "fp8"); }
  constexpr auto mxfp4(X x, Ends ends) const { return both<kiln::mxfp4>(x, ends, "mxfp4"); }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("f16", &GroupedFormats::f16),
                      kiln::entry("bf16", &GroupedFormats::bf16),
                      kiln::entry("int8", &GroupedFormats::int8),
                      kiln::entry("int4", &GroupedFormats::int4),
                      kiln::entry("int4_zero", &GroupedFormats::int4_zero),
                      kiln::entry("fp8", &GroupedFormats::fp8),
                      kiln::entry("mxfp4", &GroupedFormats::mxfp4)};
  }
};

KILN_MODEL(ops_grouped_formats, GroupedFormats)
