// SPDX-License-Identifier: Apache-2.0
// Further functions, comparisons and conversions, and composite operations.
#include "dims.h"

struct Derived : kiln::Model {
  using X = kiln::Tensor<kiln::f32, T, 19>;
  using I = kiln::Tensor<kiln::i32, T, 19>;
  using X3 = kiln::Tensor<kiln::f32, B, T, 19>;

  constexpr auto functions(X x, X y) const {
    return kiln::outputs(kiln::softplus(x), kiln::abs(x), kiln::floor(x), kiln::round(x), kiln::minimum(x, y),
                         kiln::minimum(x, 0.125), kiln::clamp(x, -1.5, 0.75), kiln::leaky_relu(x, 0.2),
                         kiln::elu(x, 1.5));
  }
  constexpr auto signs(X x, I n) const {
    return kiln::outputs(kiln::ceil(x), kiln::trunc(x), kiln::sign(x), kiln::sign(n), kiln::square(x), kiln::square(n),
                         kiln::hardtanh(x), kiln::hardtanh(x, -2.5, 0.5), kiln::relu6(x), kiln::celu(x, 1.5));
  }
  constexpr auto kinds(X x) const {
    return kiln::outputs(kiln::cast<kiln::i32>(kiln::isnan(x)), kiln::cast<kiln::i32>(kiln::isinf(x)),
                         kiln::cast<kiln::i32>(kiln::isfinite(x)));
  }
  constexpr auto tangents(X x) const { return kiln::tan(x); }
  constexpr auto sums_of_powers(X3 x) const {
    return kiln::outputs(kiln::logsumexp(x), kiln::logsumexp<1>(x), kiln::logsumexp<0>(x));
  }
  constexpr auto powers(X x, X positive, X exponent) const {
    return kiln::outputs(kiln::rsqrt(positive), kiln::pow(x, 3), kiln::pow(x, -2), kiln::pow(x, 6), kiln::pow(x, 0),
                         kiln::pow(positive, 0.5), kiln::pow(positive, -1.7), kiln::pow(positive, exponent));
  }
  /// Results as numbers, and once as a boolean for `where`.
  constexpr auto comparisons(X a, X b, I i, I j) const {
    auto both = kiln::logical_and(kiln::less(a, b), kiln::greater(a, 0.0));
    return kiln::outputs(kiln::cast<kiln::f32>(kiln::less_equal(a, b)), kiln::cast<kiln::i32>(kiln::equal(a, b)),
                         kiln::where(both, a, b), kiln::cast<kiln::i32>(kiln::equal(i, j)),
                         kiln::cast<kiln::i32>(kiln::logical_or(kiln::less_equal(i, j), kiln::equal(i, 3))),
                         kiln::cast<kiln::i32>(kiln::logical_xor(kiln::greater_equal(i, 0), kiln::not_equal(i, j))),
                         kiln::cast<kiln::f32>(kiln::logical_not(kiln::less(a, b))));
  }
  constexpr auto integers(I a, I b) const {
    return kiln::outputs(kiln::remainder(a, b), kiln::remainder(a, 7), kiln::abs(a), kiln::minimum(a, b),
                         kiln::clamp(a, -5, 9), kiln::cast<kiln::f32>(a));
  }
  constexpr auto casts(X x) const { return kiln::cast<kiln::i32>(x); }
  constexpr auto rows(X3 x, kiln::Tensor<kiln::i32, T, 3> n) const {
    return kiln::outputs(kiln::l2_normalize(x), kiln::l2_normalize<1>(x), kiln::cumsum(x), kiln::cumsum<1>(x),
                         kiln::cumsum<0>(n), kiln::cumsum<0>(kiln::tanh(x)));
  }
  constexpr auto largest(X3 x, kiln::Tensor<kiln::i32, B, 19, T> n) const {
    auto [values, places] = kiln::topk<5>(x);
    auto [first, firstPlace] = kiln::topk<1, 1>(x);
    auto [whole, wholePlaces] = kiln::topk<3, 1>(n);
    return kiln::outputs(values, places, first, firstPlace, whole, wholePlaces);
  }
  constexpr auto triangles(X3 x, kiln::Tensor<kiln::i32, T, T> n) const {
    return kiln::outputs(kiln::tril(x), kiln::triu(x), kiln::tril<-2>(x), kiln::triu<3>(x), kiln::tril<1>(n));
  }
  constexpr auto moves(X x, I n) const {
    return kiln::outputs(kiln::pad<0, 2, 1>(x), kiln::pad<-1, 0, 3>(x, 1.5), kiln::pad<1, 1, 0>(n, -7),
                         kiln::flip<1>(x), kiln::pad<0, 0, 0>(x));
  }
  constexpr auto norms(kiln::Tensor<kiln::f32, B, T, 5, 8> x, kiln::Tensor<kiln::f32, 8> scale,
                       kiln::Tensor<kiln::f32, 8> shift) const {
    return kiln::outputs(kiln::group_norm<2>(x, scale, shift), kiln::group_norm<1>(x, scale, shift, 0.1),
                         kiln::instance_norm(x, scale, shift));
  }
  /// Images that several workers reduce, and groups of few channels.
  constexpr auto groups(kiln::Tensor<kiln::f32, B, 74, 75, 12> x, kiln::Tensor<kiln::f32, 12> scale,
                        kiln::Tensor<kiln::f32, 12> shift) const {
    return kiln::outputs(kiln::group_norm<4>(x, scale, shift), kiln::group_norm<6>(x, scale, shift),
                         kiln::group_norm<1>(x, scale, shift), kiln::group_norm<12>(x, scale, shift));
  }
  constexpr auto signals(kiln::Tensor<kiln::f32, B, T, 6> x, kiln::Tensor<kiln::f32, 10, 6, 3> weight,
                         kiln::Tensor<kiln::f32, 10> bias, kiln::Tensor<kiln::f32, 4, 2, 5> grouped) const {
    return kiln::outputs(kiln::conv1d<kiln::Conv1dOptions{.padding = 1}>(x, weight, bias),
                         kiln::conv1d<kiln::Conv1dOptions{.padding = 4, .dilation = 2}>(x, weight),
                         kiln::conv1d<kiln::Conv1dOptions{.padding = 2, .groups = 2}>(
                             x, kiln::concat<1>(grouped, kiln::slice<1, 0, 1>(grouped))));
  }
  constexpr auto up(kiln::Tensor<kiln::f32, B, T, 5, 6> x, kiln::Tensor<kiln::f32, 6, 7, 3, 3> weight,
                    kiln::Tensor<kiln::f32, 7> bias, kiln::Tensor<kiln::f32, 6, 2, 2, 4> grouped) const {
    return kiln::outputs(
        kiln::conv_transpose2d<kiln::ConvTranspose2dOptions{.stride = 2, .padding = 1, .output_padding = 1}>(x, weight,
                                                                                                             bias),
        kiln::conv_transpose2d(x, weight),
        kiln::conv_transpose2d<kiln::ConvTranspose2dOptions{
            .stride = {2, 3}, .padding = {0, 2}, .dilation = {3, 1}, .groups = 2}>(x, grouped));
  }
  /// Phases without elements, groups, padding of more than a stride, dilation that shares a factor with the stride.
  constexpr auto phases(kiln::Tensor<kiln::f32, B, T, 5, 6> x, kiln::Tensor<kiln::f32, 6, 2, 2, 4> weight,
                        kiln::Tensor<kiln::f32, 6, 1, 1, 1> pixel) const {
    return kiln::outputs(
        kiln::conv_transpose2d<kiln::ConvTranspose2dOptions{
            .stride = {1, 4}, .padding = {0, 3}, .output_padding = {0, 3}, .groups = 3}>(x, weight),
        kiln::conv_transpose2d<kiln::ConvTranspose2dOptions{.stride = {3, 2}, .output_padding = {2, 0}}>(x, pixel),
        kiln::conv_transpose2d<kiln::ConvTranspose2dOptions{
            .stride = {4, 6}, .padding = {3, 9}, .output_padding = {1, 4}, .dilation = {6, 4}, .groups = 2}>(x,
                                                                                                             weight));
  }
  constexpr auto up_signals(kiln::Tensor<kiln::f32, B, T, 6> x, kiln::Tensor<kiln::f32, 6, 3, 16> weight,
                            kiln::Tensor<kiln::f32, 3> bias) const {
    return kiln::outputs(
        kiln::conv_transpose1d<kiln::ConvTranspose1dOptions{.stride = 8, .padding = 4}>(x, weight, bias),
        kiln::conv_transpose1d<kiln::ConvTranspose1dOptions{.stride = 5, .padding = 6, .output_padding = 1}>(x,
                                                                                                             weight));
  }
  /// The buckets of T5's relative positions (Raffel et al. 2020), bidirectional: half for each direction, half of these
  /// for single distances, the others by the logarithm up to 128.
  constexpr auto buckets(kiln::Tensor<kiln::f32, T, S> scores) const {
    auto queries = kiln::reshape<T, 1>(kiln::positions<0>(scores));
    auto distance = kiln::positions<1>(scores) - queries;
    auto size = kiln::abs(distance);
    auto logarithm = kiln::log(kiln::cast<kiln::f32>(kiln::maximum(size, 1)) / 8.0) * (8.0 / 2.772588722239781);
    auto far = kiln::minimum(8 + kiln::cast<kiln::i32>(kiln::maximum(logarithm, 0.0)), 15);
    return kiln::cast<kiln::i32>(kiln::less(0, distance)) * 16 + kiln::where(kiln::less(size, 8), size, far);
  }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("functions", &Derived::functions),
                      kiln::entry("signs", &Derived::signs),
                      kiln::entry("kinds", &Derived::kinds),
                      kiln::entry("tangents", &Derived::tangents),
                      kiln::entry("sums_of_powers", &Derived::sums_of_powers),
                      kiln::entry("powers", &Derived::powers),
                      kiln::entry("comparisons", &Derived::comparisons),
                      kiln::entry("integers", &Derived::integers),
                      kiln::entry("casts", &Derived::casts),
                      kiln::entry("rows", &Derived::rows),
                      kiln::entry("largest", &Derived::largest),
                      kiln::entry("triangles", &Derived::triangles),
                      kiln::entry("moves", &Derived::moves),
                      kiln::entry("norms", &Derived::norms),
                      kiln::entry("groups", &Derived::groups),
                      kiln::entry("signals", &Derived::signals),
                      kiln::entry("up", &Derived::up),
                      kiln::entry("phases", &Derived::phases),
                      kiln::entry("up_signals", &Derived::up_signals),
                      kiln::entry("buckets", &Derived::buckets)};
  }
};

KILN_MODEL(ops_derived, Derived)
