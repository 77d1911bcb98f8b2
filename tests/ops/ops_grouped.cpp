// SPDX-License-Identifier: Apache-2.0
// Linears of groups of rows: outputs that fill vectors and that do not, both weight orders, epilogues, one group; and
// mixtures of experts.
#include "dims.h"

inline constexpr kiln::ExpertsOptions with_shared{
    .gate = kiln::RouterGate::sigmoid, .normalize = false, .shared = 9, .gates_shared = true, .scale = 2.5};

struct Grouped : kiln::Model {
  using X = kiln::Tensor<kiln::f32, T, 23>;
  using Ends = kiln::Tensor<kiln::i32, 5>;

  kiln::Experts<23, 32, 6, 2> chosen{"chosen"};
  kiln::Experts<23, 11, 3, 1, with_shared> single{"single"};

  template <kiln::Dim... Extents> static constexpr auto p(const kiln::tensor auto &x, const char *name) {
    return kiln::parameter<kiln::f32, Extents...>(x, name);
  }

  constexpr auto linear(X x, Ends ends) const {
    auto plain = kiln::grouped_linear(x, p<5 * 17, 23>(x, "plain"), ends, p<5 * 17>(x, "plain_bias"));
    auto wide = kiln::grouped_linear(x, p<5 * 96, 23>(x, "wide"), ends);
    auto swapped = kiln::grouped_linear<kiln::WeightOrder::in_out>(x, p<5 * 23, 34>(x, "swapped"), ends,
                                                                   p<5 * 34>(x, "swapped_bias"));
    return kiln::outputs(plain, wide, swapped);
  }
  /// A gated perceptron for each group.
  constexpr auto epilogue(X x, Ends ends) const {
    auto gate = kiln::silu(kiln::grouped_linear(x, p<5 * 40, 23>(x, "gate"), ends));
    auto up = kiln::grouped_linear(x, p<5 * 40, 23>(x, "up"), ends, p<5 * 40>(x, "up_bias"));
    return kiln::grouped_linear(gate * up, p<5 * 23, 40>(x, "down"), ends) * 0.5 + x;
  }
  constexpr auto one_group(X x, kiln::Tensor<kiln::i32, 1> ends) const {
    return kiln::grouped_linear(x, p<33, 23>(x, "only"), ends);
  }
  /// A static number of rows, and ends that the entry computes.
  constexpr auto few_rows(kiln::Tensor<kiln::f32, 3, 23> x, Ends ends) const {
    return kiln::grouped_linear(kiln::tanh(x), p<5 * 17, 23>(x, "plain"), ends + 1);
  }

  constexpr auto experts(X x) const { return kiln::outputs(chosen(x), single(x)); }
  constexpr auto one_token(kiln::Tensor<kiln::f32, 1, 23> x) const { return chosen(x); }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("experts", &Grouped::experts),     kiln::entry("one_token", &Grouped::one_token),
                      kiln::entry("linear", &Grouped::linear),       kiln::entry("epilogue", &Grouped::epilogue),
                      kiln::entry("one_group", &Grouped::one_group), kiln::entry("few_rows", &Grouped::few_rows)};
  }
};

KILN_MODEL(ops_grouped, Grouped)
