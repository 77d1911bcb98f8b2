// SPDX-License-Identifier: Apache-2.0
// Softmax and reductions along every axis, norms of several widths.
#include "dims.h"

struct Rows : kiln::Model {
  using X = kiln::Tensor<kiln::f32, B, T, 13>;
  kiln::LayerNorm<37> norm37{"norm37"};
  kiln::LayerNorm<200> norm200{"norm200", 1e-3};
  kiln::LayerNorm<1> norm1{"norm1"};
  kiln::RmsNorm<37> rms37{"rms37"};
  kiln::RmsNorm<130> rms130{"rms130", 1e-2};
  kiln::BatchNorm1d<37> batch37{"batch37"};
  kiln::BatchNorm1d<1> batch1{"batch1", 1e-2};

  constexpr auto softmax(X x) const {
    return kiln::outputs(kiln::softmax<0>(x), kiln::softmax<1>(x), kiln::softmax<2>(x));
  }
  constexpr auto log_softmax(X x) const {
    return kiln::outputs(kiln::log_softmax<0>(x), kiln::log_softmax<1>(x), kiln::log_softmax<-1>(x));
  }
  constexpr auto mean(X x) const { return kiln::outputs(kiln::mean<0>(x), kiln::mean<1>(x), kiln::mean<2>(x)); }
  constexpr auto max(X x) const { return kiln::outputs(kiln::max<0>(x), kiln::max<-2>(x), kiln::max<2>(x)); }
  constexpr auto sum(X x) const { return kiln::outputs(kiln::sum<0>(x), kiln::sum<1>(x), kiln::sum<2>(x)); }
  constexpr auto argmax(X x) const { return kiln::outputs(kiln::argmax<0>(x), kiln::argmax<1>(x), kiln::argmax<2>(x)); }
  /// Hard attention: a sample from given noise, and the row that it selects.
  constexpr auto gumbel(kiln::Tensor<kiln::f32, T, 13> x, kiln::Tensor<kiln::f32, T, 13> uniform,
                        kiln::Tensor<kiln::f32, 13, 5> z) const {
    auto drawn = kiln::gumbel_max(x, uniform);
    return kiln::outputs(drawn, kiln::gather<0>(z, drawn));
  }
  /// A vector of dynamic length reduced to a number; softmax over a dynamic last axis.
  constexpr auto vector(kiln::Tensor<kiln::f32, S> x) const {
    return kiln::outputs(kiln::mean(x), kiln::max(x), kiln::sum(x), kiln::argmax(x), kiln::softmax(x));
  }
  constexpr auto integers(kiln::Tensor<kiln::i32, T, 13> x) const {
    return kiln::outputs(kiln::sum<0>(x), kiln::sum<1>(x), kiln::max<0>(x), kiln::max<1>(x), kiln::argmax<1>(x));
  }
  constexpr auto layer_norm(kiln::Tensor<kiln::f32, B, T, 37> a, kiln::Tensor<kiln::f32, T, 200> b,
                            kiln::Tensor<kiln::f32, T, 1> c) const {
    return kiln::outputs(norm37(a), norm200(b), norm1(c));
  }
  constexpr auto rms_norm(kiln::Tensor<kiln::f32, B, T, 37> a, kiln::Tensor<kiln::f32, T, 130> b) const {
    return kiln::outputs(rms37(a), rms130(b));
  }
  constexpr auto batch_norm(kiln::Tensor<kiln::f32, B, T, 37> a, kiln::Tensor<kiln::f32, T, 37> b,
                            kiln::Tensor<kiln::f32, T, 1> c) const {
    return kiln::outputs(batch37(a), batch37(b), batch1(c));
  }
  /// A residual before a norm and a product after it, which are fused with it.
  constexpr auto fused(kiln::Tensor<kiln::f32, T, 37> a, kiln::Tensor<kiln::f32, T, 37> b) const {
    auto x = a + b;
    return kiln::outputs(x, norm37(x) * 2.0);
  }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("softmax", &Rows::softmax),   kiln::entry("log_softmax", &Rows::log_softmax),
                      kiln::entry("mean", &Rows::mean),         kiln::entry("max", &Rows::max),
                      kiln::entry("sum", &Rows::sum),           kiln::entry("argmax", &Rows::argmax),
                      kiln::entry("gumbel", &Rows::gumbel),     kiln::entry("vector", &Rows::vector),
                      kiln::entry("integers", &Rows::integers), kiln::entry("layer_norm", &Rows::layer_norm),
                      kiln::entry("rms_norm", &Rows::rms_norm), kiln::entry("batch_norm", &Rows::batch_norm),
                      kiln::entry("fused", &Rows::fused)};
  }
};

KILN_MODEL(ops_rows, Rows)
