// SPDX-License-Identifier: Apache-2.0
//
// A gradient entry for each operation of singular_points.inc, whose elements are the points. The input dy is the
// gradient of the elements of the result.
#pragma once

#include <kiln/dsl.h>

namespace specs {

using kiln::f32;
using kiln::i32;

struct SingularPoints : kiln::Model {
  static constexpr int points = 40; // at most, per operation
  using Points = kiln::Tensor<f32, points>;
  using Rows = kiln::Tensor<f32, 3, 4>;

  static constexpr auto x(const Points &dy, const char *name) { return kiln::parameter<f32, points>(dy, name); }
  static constexpr auto x(const Rows &dy, const char *name) { return kiln::parameter<f32, 3, 4>(dy, name); }
  static constexpr auto ones(const kiln::tensor auto &a) { return kiln::constant<f32, 4>(a, {1, 1, 1, 1}); }
  static constexpr auto zeros(const kiln::tensor auto &a) { return kiln::constant<f32, 4>(a, {0, 0, 0, 0}); }

  kiln::BatchNorm1d<4> batch_norm{"batch_norm"};

  static constexpr auto targets(const Rows &a) {
    return kiln::constant<f32, 3, 4>(a, {0.5, 1, 0, 0, 1, 0, 1, 1, 0, 1, 1, 0});
  }
  static constexpr auto image(const Rows &a) { return kiln::reshape<3, 1, 4>(a); }
  static constexpr auto pooled(const Rows &a) {
    constexpr kiln::Pool2dOptions options{.stride = 1, .padding = 1};
    return kiln::reshape<3, 4>(kiln::max_pool2d<3, options>(kiln::reshape<3, 4, 1>(a)));
  }
  /// Query 1 may attend to no key, so its result is 0.
  static constexpr auto mask(const Rows &a) {
    constexpr double no = -3e38;
    return kiln::constant<f32, 3, 3>(a, {0, no, 0, no, no, no, no, no, 0});
  }
  static constexpr auto weighted(const Rows &a) {
    return kiln::matmul(kiln::reshape<3, 3>(kiln::attention_weights<1>(a, a, kiln::mask(mask(a)))), a);
  }
  /// Three sequences of two rows, of which 2, 0 and 1 count. The result of the empty one is 0.
  static constexpr auto of_lengths(const Rows &a) {
    auto sequences = kiln::reshape<3, 2, 2>(a);
    auto lengths = kiln::constant<i32, 3>(a, {2, 0, 1});
    return kiln::reshape<3, 4>(kiln::attention<1>(sequences, sequences, sequences, kiln::lengths(lengths)));
  }

#define SINGULAR_UNARY(name, y)                                                                                        \
  constexpr auto at_##name(Points dy) const {                                                                          \
    auto a = x(dy, #name "_a");                                                                                        \
    return kiln::sum((y) * dy);                                                                                        \
  }
#define SINGULAR_BINARY(name, y)                                                                                       \
  constexpr auto at_##name(Points dy) const {                                                                          \
    auto a = x(dy, #name "_a"), b = x(dy, #name "_b");                                                                 \
    return kiln::sum((y) * dy);                                                                                        \
  }
#define SINGULAR_ROWS(name, y)                                                                                         \
  constexpr auto at_##name(Rows dy) const {                                                                            \
    auto a = x(dy, #name "_a");                                                                                        \
    return kiln::sum(kiln::sum((y) * dy));                                                                             \
  }
#define SINGULAR_OPERATIONS                                                                                            \
  SINGULAR_UNARY(exp, kiln::exp(a))                                                                                    \
  SINGULAR_UNARY(log, kiln::log(a))                                                                                    \
  SINGULAR_UNARY(sqrt, kiln::sqrt(a))                                                                                  \
  SINGULAR_UNARY(rsqrt, kiln::rsqrt(a))                                                                                \
  SINGULAR_UNARY(abs, kiln::abs(a))                                                                                    \
  SINGULAR_UNARY(tanh, kiln::tanh(a))                                                                                  \
  SINGULAR_UNARY(sigmoid, kiln::sigmoid(a))                                                                            \
  SINGULAR_UNARY(relu, kiln::relu(a))                                                                                  \
  SINGULAR_UNARY(gelu, kiln::gelu(a))                                                                                  \
  SINGULAR_UNARY(gelu_tanh, kiln::gelu_tanh(a))                                                                        \
  SINGULAR_UNARY(silu, kiln::silu(a))                                                                                  \
  SINGULAR_UNARY(softplus, kiln::softplus(a))                                                                          \
  SINGULAR_UNARY(leaky_relu, kiln::leaky_relu(a))                                                                      \
  SINGULAR_UNARY(elu, kiln::elu(a, 2))                                                                                 \
  SINGULAR_UNARY(sin, kiln::sin(a))                                                                                    \
  SINGULAR_UNARY(cos, kiln::cos(a))                                                                                    \
  SINGULAR_UNARY(tan, kiln::tan(a))                                                                                    \
  SINGULAR_UNARY(erf, kiln::erf(a))                                                                                    \
  SINGULAR_UNARY(expm1, kiln::expm1(a))                                                                                \
  SINGULAR_UNARY(log1p, kiln::log1p(a))                                                                                \
  SINGULAR_UNARY(sinh, kiln::sinh(a))                                                                                  \
  SINGULAR_UNARY(cosh, kiln::cosh(a))                                                                                  \
  SINGULAR_UNARY(log2, kiln::log2(a))                                                                                  \
  SINGULAR_UNARY(log10, kiln::log10(a))                                                                                \
  SINGULAR_UNARY(reciprocal, kiln::reciprocal(a))                                                                      \
  SINGULAR_UNARY(hardtanh, kiln::hardtanh(a))                                                                          \
  SINGULAR_UNARY(relu6, kiln::relu6(a))                                                                                \
  SINGULAR_UNARY(hard_sigmoid, kiln::hard_sigmoid(a))                                                                  \
  SINGULAR_UNARY(hard_swish, kiln::hard_swish(a))                                                                      \
  SINGULAR_UNARY(mish, kiln::mish(a))                                                                                  \
  SINGULAR_UNARY(selu, kiln::selu(a))                                                                                  \
  SINGULAR_UNARY(celu, kiln::celu(a, 2))                                                                               \
  SINGULAR_UNARY(log_sigmoid, kiln::log_sigmoid(a))                                                                    \
  SINGULAR_UNARY(softsign, kiln::softsign(a))                                                                          \
  SINGULAR_UNARY(clamp, kiln::clamp(a, 0, 1))                                                                          \
  SINGULAR_UNARY(pow_0, kiln::pow(a, 0) + a * 0)                                                                       \
  SINGULAR_UNARY(pow_half, kiln::pow(a, 0.5))                                                                          \
  SINGULAR_UNARY(pow_1, kiln::pow(a, 1))                                                                               \
  SINGULAR_UNARY(pow_2, kiln::pow(a, 2))                                                                               \
  SINGULAR_UNARY(pow_3, kiln::pow(a, 3))                                                                               \
  SINGULAR_UNARY(pow_7, kiln::pow(a, 7))                                                                               \
  SINGULAR_UNARY(pow_100, kiln::pow(a, 100))                                                                           \
  SINGULAR_UNARY(pow_101, kiln::pow(a, 101))                                                                           \
  SINGULAR_UNARY(pow_part, kiln::pow(a, 0.3))                                                                          \
  SINGULAR_UNARY(pow_more, kiln::pow(a, 1.5))                                                                          \
  SINGULAR_UNARY(pow_minus_1, kiln::pow(a, -1))                                                                        \
  SINGULAR_UNARY(pow_minus_2, kiln::pow(a, -2))                                                                        \
  SINGULAR_UNARY(pow_minus_3, kiln::pow(a, -3))                                                                        \
  SINGULAR_UNARY(pow_minus_7, kiln::pow(a, -7))                                                                        \
  SINGULAR_UNARY(pow_minus_101, kiln::pow(a, -101))                                                                    \
  SINGULAR_UNARY(pow_minus_half, kiln::pow(a, -0.5))                                                                   \
  SINGULAR_UNARY(pow_minus_part, kiln::pow(a, -0.3))                                                                   \
  SINGULAR_UNARY(pow_minus_more, kiln::pow(a, -3.5))                                                                   \
  SINGULAR_UNARY(where_log, kiln::where(kiln::less(0, a), kiln::log(kiln::where(kiln::less(0, a), a, 1)), a))          \
  SINGULAR_BINARY(mul, a *b)                                                                                           \
  SINGULAR_BINARY(div, a / b)                                                                                          \
  SINGULAR_BINARY(maximum, kiln::maximum(a, b))                                                                        \
  SINGULAR_BINARY(minimum, kiln::minimum(a, b))                                                                        \
  SINGULAR_BINARY(pow, kiln::pow(a, b))                                                                                \
  SINGULAR_ROWS(l2_normalize, kiln::l2_normalize(a))                                                                   \
  SINGULAR_ROWS(softmax, kiln::softmax(a))                                                                             \
  SINGULAR_ROWS(log_softmax, kiln::log_softmax(a))                                                                     \
  SINGULAR_ROWS(logsumexp, (kiln::expand<3, 4>(kiln::reshape<3, 1>(kiln::logsumexp(a)))))                              \
  SINGULAR_ROWS(cross_entropy, kiln::cross_entropy(a, kiln::constant<i32, 3>(a, {1, 3, 0})))                           \
  SINGULAR_ROWS(max, (kiln::expand<3, 4>(kiln::reshape<3, 1>(kiln::max(a)))))                                          \
  SINGULAR_ROWS(layer_norm, kiln::layer_norm(a, ones(a), zeros(a), 1e-5))                                              \
  SINGULAR_ROWS(rms_norm, kiln::rms_norm(a, ones(a), 1e-5))                                                            \
  SINGULAR_ROWS(binary_cross_entropy, kiln::binary_cross_entropy(a, targets(a)))                                       \
  SINGULAR_ROWS(group_norm, (kiln::reshape<3, 4>(kiln::group_norm<2>(image(a), ones(a), zeros(a), 0x1p-7))))           \
  SINGULAR_ROWS(instance_norm, (kiln::reshape<3, 4>(kiln::instance_norm(image(a), ones(a), zeros(a), 0x1p-7))))        \
  SINGULAR_ROWS(batch_norm, batch_norm(a))                                                                             \
  SINGULAR_ROWS(max_pool2d, pooled(a))                                                                                 \
  SINGULAR_ROWS(attention, kiln::attention<2>(a, a, a, kiln::mask(mask(a))))                                           \
  SINGULAR_ROWS(attention_weights, weighted(a))                                                                        \
  SINGULAR_ROWS(attention_of_lengths, of_lengths(a))
  SINGULAR_OPERATIONS
#undef SINGULAR_UNARY
#undef SINGULAR_BINARY
#undef SINGULAR_ROWS

  static constexpr auto entries() {
#define SINGULAR_UNARY(name, y) kiln::gradients("at_" #name, &SingularPoints::at_##name, {"dy"}, {"loss"}),
#define SINGULAR_BINARY SINGULAR_UNARY
#define SINGULAR_ROWS SINGULAR_UNARY
    return std::tuple{SINGULAR_OPERATIONS};
#undef SINGULAR_UNARY
#undef SINGULAR_BINARY
#undef SINGULAR_ROWS
  }
};

/// The two largest elements of each row, times dy.
struct Ties : kiln::Model {
  constexpr auto loss(kiln::Tensor<f32, 4, 2> dy) const {
    auto a = kiln::parameter<f32, 4, 4>(dy, "a");
    return kiln::sum(kiln::sum(kiln::topk<2>(a).first * dy));
  }

  static constexpr auto entries() { return std::tuple{kiln::gradients("topk", &Ties::loss, {"dy"}, {"loss"})}; }
};

/// Embedding lookups times dy: the gradient of table row v is the sum of the rows of dy with index v.
struct LookedUp : kiln::Model {
  static constexpr kiln::Dim count{"rows", 1, 40};
  using Indices = kiln::Tensor<i32, count>;
  template <kiln::Dim... Others> using Weights = kiln::Tensor<f32, count, Others...>;

  template <int Height> constexpr auto embedded(Indices i, Weights<3> dy) const {
    auto table = kiln::parameter<f32, Height, 3>(dy, Height == 5 ? "small" : "large");
    return kiln::sum(kiln::sum(kiln::embedding(i, table) * dy));
  }
  /// Fewer table rows than there may be indices, and more.
  constexpr auto small(Indices i, Weights<3> dy) const { return embedded<5>(i, dy); }
  constexpr auto large(Indices i, Weights<3> dy) const { return embedded<300>(i, dy); }
  constexpr auto columns(Indices i, Weights<3> dy) const {
    auto picked = kiln::gather<1>(kiln::parameter<f32, 3, 7>(dy, "columns"), i);
    return kiln::sum(kiln::sum(kiln::transpose<1, 0>(picked) * dy));
  }

  static constexpr auto entries() {
    return std::tuple{kiln::gradients("small", &LookedUp::small, {"i", "dy"}, {"loss"}),
                      kiln::gradients("large", &LookedUp::large, {"i", "dy"}, {"loss"}),
                      kiln::gradients("columns", &LookedUp::columns, {"i", "dy"}, {"loss"})};
  }
};

/// The distance of normalised rows of a table, one of which is zeros, from given rows.
struct NormalizedLookUp : kiln::Model {
  kiln::Embedding<5, 4> table{"table"};

  constexpr auto loss(kiln::Tensor<i32, 3> i, kiln::Tensor<f32, 3, 4> t) const {
    return kiln::mse(kiln::l2_normalize(table(i)), t);
  }

  static constexpr auto entries() {
    return std::tuple{
        kiln::gradients("gradients", &NormalizedLookUp::loss, {"i", "t"}, {"loss"}),
        kiln::train("train", &NormalizedLookUp::loss, {"i", "t"}, {"loss"}, kiln::AdamW{.weight_decay = 0.01})};
  }
};

/// Training steps with a finite loss whose gradients may not be finite: the square root of x^2 has no gradient at 0.
struct Unfinished : kiln::Model {
  kiln::Linear<3, 3> layer{"layer"};

  constexpr auto loss(kiln::Tensor<f32, 2, 3> x) const {
    auto scale = kiln::parameter<f32, 3>(x, "scale");
    return kiln::mean(kiln::mean(layer(x) * layer(x))) + kiln::mean(kiln::sqrt(scale * scale));
  }

  static constexpr auto entries() {
    constexpr auto train = [](const char *name, auto optimizer) {
      return kiln::train(name, &Unfinished::loss, {"x"}, {"loss"}, optimizer);
    };
    return std::tuple{train("descend", kiln::Sgd{}),
                      train("roll", kiln::Sgd{.momentum = 0.9}),
                      train("adam", kiln::Adam{}),
                      train("adamw", kiln::AdamW{}),
                      train("averaged", kiln::AdamW{}).averaged(0.9),
                      train("clipped", kiln::AdamW{}).clipped(1)};
  }
};

} // namespace specs
