// SPDX-License-Identifier: Apache-2.0
// Unary functions, powers, and sines and rotations of large positions: tests of the error bounds in dsl/SPEC.md.
#include "functions.h"

#include <kiln/generator.h>

inline constexpr kiln::Dim N{"numbers", 1, 1 << 20}, P{"positions", 1, 4096};

struct Functions : kiln::Model {
  using X = kiln::Tensor<kiln::f32, N>;

#define KILN_OUTPUT(name, ...) kiln::name(x)
  constexpr auto basic(X x) const { return kiln::outputs(KILN_TEST_BASIC_FUNCTIONS(KILN_OUTPUT)); }
  constexpr auto analytic(X x) const { return kiln::outputs(KILN_TEST_ANALYTIC_FUNCTIONS(KILN_OUTPUT)); }
  constexpr auto activations(X x) const { return kiln::outputs(KILN_TEST_ACTIVATIONS(KILN_OUTPUT)); }
  /// Kernels without vectors.
  using One = kiln::Tensor<kiln::f32, 1>;
  constexpr auto single_basic(One x) const { return kiln::outputs(KILN_TEST_BASIC_FUNCTIONS(KILN_OUTPUT)); }
  constexpr auto single_analytic(One x) const { return kiln::outputs(KILN_TEST_ANALYTIC_FUNCTIONS(KILN_OUTPUT)); }
  constexpr auto single_activations(One x) const { return kiln::outputs(KILN_TEST_ACTIVATIONS(KILN_OUTPUT)); }
#undef KILN_OUTPUT
  constexpr auto powers(X a, X b) const {
    return kiln::outputs(kiln::pow(a, b), kiln::pow(a, 2.5), kiln::pow(a, -0.75), kiln::pow(a, 3), kiln::pow(a, -2),
                         kiln::pow(a, -7), kiln::pow(a, 100), kiln::pow(a, -101));
  }
  constexpr auto angles(kiln::Tensor<kiln::i32, P> at) const {
    return kiln::outputs(kiln::sinusoidal<64>(at), kiln::sinusoidal<128>(at, 500000.0), kiln::sinusoidal<6>(at, 1.5));
  }
  constexpr auto rotated(kiln::Tensor<kiln::i32, P> at, kiln::Tensor<kiln::f32, P, 64> x) const {
    return kiln::rotary<2>(x, kiln::sinusoidal<32>(at, 500000.0));
  }
  /// Scores beyond the range of f16.
  constexpr auto weights(kiln::Tensor<kiln::f16, 3, 32> q, kiln::Tensor<kiln::f16, 5, 32> k,
                         kiln::Tensor<kiln::f16, 3, 5> mask) const {
    return kiln::outputs(kiln::attention_weights<1>(q, k, kiln::scale(0.00390625)),
                         kiln::attention_weights<1>(q, k, kiln::scale(0.00390625) | kiln::mask(mask)),
                         kiln::attention<1>(q, k, k, kiln::scale(0.00390625)),
                         kiln::softmax(kiln::attention_scores<1>(q, k, kiln::scale(0.00390625))));
  }
  /// Scores that bf16 cannot tell apart.
  constexpr auto bfloat_weights(kiln::Tensor<kiln::bf16, 3, 32> q, kiln::Tensor<kiln::bf16, 5, 32> k,
                                kiln::Tensor<kiln::bf16, 3, 5> mask) const {
    return kiln::outputs(kiln::attention_weights<1>(q, k, kiln::scale(0.00390625)),
                         kiln::attention_weights<1>(q, k, kiln::scale(0.00390625) | kiln::mask(mask)),
                         kiln::attention<1>(q, k, k, kiln::scale(0.00390625)));
  }
  /// Means over rows and over columns, of an odd number of elements.
  constexpr auto norms(kiln::Tensor<kiln::f32, 64, 769> x, kiln::Tensor<kiln::f32, 769, 64> columns,
                       kiln::Tensor<kiln::f32, 769> weight, kiln::Tensor<kiln::f32, 769> bias) const {
    return kiln::outputs(kiln::layer_norm(x, weight, bias),
                         kiln::layer_norm(kiln::transpose<1, 0>(columns), weight, bias), kiln::mean<0>(columns),
                         kiln::mean<1>(x));
  }
  /// Means over two axes: both long, a long one around a short one, and the reverse.
  constexpr auto images(kiln::Tensor<kiln::f32, 24, 32, 64> x, kiln::Tensor<kiln::f32, 640, 2, 64> y,
                        kiln::Tensor<kiln::f32, 2, 640, 64> z) const {
    return kiln::outputs(kiln::adaptive_avg_pool2d<1>(x), kiln::adaptive_avg_pool2d<1>(y),
                         kiln::adaptive_avg_pool2d<1>(z));
  }
  /// Groups of even and odd numbers of channels: narrow ones, single channels, and wide ones.
  template <kiln::ElementType E> using Image = kiln::Tensor<E, 2, 11, 13, 36>;
  template <kiln::ElementType E> using Channels = kiln::Tensor<E, 36>;
  constexpr auto group_norms(Image<kiln::f32> x, Channels<kiln::f32> weight, Channels<kiln::f32> bias) const {
    return kiln::outputs(kiln::group_norm<12>(x, weight, bias), kiln::group_norm<18>(x, weight, bias),
                         kiln::instance_norm(x, weight, bias), kiln::group_norm<4>(x, weight, bias),
                         kiln::group_norm<2>(x, weight, bias));
  }
  constexpr auto half_group_norms(Image<kiln::f16> x, Channels<kiln::f16> weight, Channels<kiln::f16> bias,
                                  Image<kiln::bf16> y, Channels<kiln::bf16> weight_y,
                                  Channels<kiln::bf16> bias_y) const {
    return kiln::outputs(kiln::group_norm<12>(x, weight, bias), kiln::instance_norm(x, weight, bias),
                         kiln::group_norm<4>(x, weight, bias), kiln::group_norm<12>(y, weight_y, bias_y),
                         kiln::instance_norm(y, weight_y, bias_y), kiln::group_norm<4>(y, weight_y, bias_y));
  }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("basic", &Functions::basic),
                      kiln::entry("analytic", &Functions::analytic),
                      kiln::entry("activations", &Functions::activations),
                      kiln::entry("single_basic", &Functions::single_basic),
                      kiln::entry("single_analytic", &Functions::single_analytic),
                      kiln::entry("single_activations", &Functions::single_activations),
                      kiln::entry("powers", &Functions::powers),
                      kiln::entry("angles", &Functions::angles),
                      kiln::entry("rotated", &Functions::rotated),
                      kiln::entry("weights", &Functions::weights),
                      kiln::entry("bfloat_weights", &Functions::bfloat_weights),
                      kiln::entry("norms", &Functions::norms),
                      kiln::entry("images", &Functions::images),
                      kiln::entry("group_norms", &Functions::group_norms),
                      kiln::entry("half_group_norms", &Functions::half_group_norms)};
  }
};

KILN_MODEL(ops_functions, Functions)
