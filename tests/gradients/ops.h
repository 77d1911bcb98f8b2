// SPDX-License-Identifier: Apache-2.0
//
// A gradient entry for each op and each way in which it reads its operands: the loss is the sum of its elements, each
// times a parameter, so that no two elements have the same gradient.
#pragma once

#include <kiln/dsl.h>

namespace specs {

using kiln::f32;
using kiln::i32;
inline constexpr kiln::Dim rows{"rows", 1, 9};

template <class X> constexpr auto total(const X &x) {
  if constexpr (X::rank == 0)
    return x;
  else
    return total(kiln::sum<0>(x));
}

struct GradientOps : kiln::Model {
  using Rows = kiln::Tensor<f32, rows, 4>;

  template <kiln::Dim... E> static constexpr auto p(const Rows &x, const char *name) {
    return kiln::parameter<f32, E...>(x, name);
  }
  /// For fixed extents only.
  template <kiln::ElementType E, kiln::Dim... Extents>
  static constexpr auto weighted(const Rows &x, const char *name, const kiln::Tensor<E, Extents...> &y) {
    return total(y * p<Extents...>(x, name));
  }

  constexpr auto pointwise(Rows x) const {
    auto a = p<3, 5>(x, "pointwise_a");
    auto b = p<1, 5>(x, "pointwise_b");
    auto y = kiln::exp(a * 0.5) + kiln::log(a * a + 1) * b - kiln::sqrt(b * b + 0.5) / (kiln::sigmoid(a) + 1);
    return weighted(x, "pointwise_weighted", y + kiln::tanh(a - b) + kiln::softplus(b) + kiln::abs(a * b));
  }
  constexpr auto activations(Rows x) const {
    auto a = p<3, 5>(x, "activations_a") * 3;
    return weighted(x, "activations_weighted",
                    kiln::relu(a) + kiln::gelu(a) * kiln::gelu_tanh(a) + kiln::silu(a) * kiln::sigmoid(a));
  }
  constexpr auto choices(Rows x) const {
    auto a = p<3, 5>(x, "choices_a");
    auto b = p<5>(x, "choices_b");
    auto c = p<3, 1>(x, "choices_c");
    auto y = kiln::where(kiln::less(a, b), a * b, c * 2) + kiln::maximum(a, c) * kiln::minimum(b, c);
    return weighted(x, "choices_weighted", y + kiln::floor(a * 7) * b);
  }
  constexpr auto rows_of_inputs(Rows x) const {
    auto y = kiln::softmax(x * p<4>(x, "rows_of_inputs_scale")) +
             kiln::log_softmax<0>(x + p<1, 4>(x, "rows_of_inputs_shift"));
    return total(y * y * p<4>(x, "rows_of_inputs_weights"));
  }
  constexpr auto norms(Rows x) const {
    auto a = p<4>(x, "norms_a");
    auto y = kiln::layer_norm(x * a + a, p<4>(x, "norms_weight"), p<4>(x, "norms_bias"), 1e-3);
    return total(kiln::rms_norm(y * y + a, p<4>(x, "norms_weight"), 1e-3) * p<4>(x, "norms_weights"));
  }
  constexpr auto reductions(Rows x) const {
    auto a = p<3, 4, 5>(x, "reductions_a");
    auto y = kiln::mean<0>(a) * kiln::sum<0>(a) + kiln::max<0>(a);
    auto of_inputs = kiln::mean<0>(kiln::exp(x * p<4>(x, "reductions_scale")));
    auto running = kiln::cumsum<0>(x * p<4>(x, "reductions_running")) * kiln::cumsum(p<4>(x, "reductions_sums"));
    return weighted(x, "reductions_weighted", y) + total(running * p<4>(x, "reductions_last")) +
           weighted(x, "reductions_axes", kiln::cumsum<1>(a)) +
           total(of_inputs * kiln::max<0>(x * p<4>(x, "reductions_scale")) * p<4>(x, "reductions_more"));
  }
  constexpr auto products(Rows x) const {
    auto y = kiln::linear(x, p<5, 4>(x, "products_out_in"), p<5>(x, "products_bias"));
    auto z = kiln::linear<kiln::WeightOrder::in_out>(kiln::tanh(y), p<5, 3>(x, "products_in_out"));
    auto b = kiln::matmul(p<2, 3, 4>(x, "products_a"), p<4, 6>(x, "products_b"));
    auto c = kiln::matmul(b, p<2, 6, 2>(x, "products_c"));
    auto d = kiln::matmul(p<1, 3, 6>(x, "products_d"), kiln::transpose<1, 0>(p<2, 6>(x, "products_e")));
    return total(z * z) + weighted(x, "products_weighted", c * d);
  }
  constexpr auto groups(Rows x, kiln::Tensor<i32, 3> ends) const {
    auto y = kiln::grouped_linear(x, p<15, 4>(x, "groups_out_in"), ends, p<15>(x, "groups_biases"));
    auto z = kiln::grouped_linear<kiln::WeightOrder::in_out>(kiln::tanh(y), p<15, 2>(x, "groups_in_out"), ends,
                                                             p<6>(x, "groups_more_biases"));
    return total(z * z);
  }
  constexpr auto movements(Rows x) const {
    auto a = p<2, 3, 4>(x, "movements_a");
    auto b = kiln::transpose<2, 0, 1>(a);
    auto c = kiln::reshape<4, 6>(b);
    auto d = kiln::concat<1>(c, kiln::slice<1, 2, 3>(c) * 2);
    auto e = kiln::concat<0>(x * p<4>(x, "movements_scale"), p<2, 4>(x, "movements_table"));
    auto f = kiln::slice<0, 0, rows>(e) * kiln::last<0, rows>(e);
    return weighted(x, "movements_weighted", d * d) + total(f);
  }
  constexpr auto lookups(Rows x, kiln::Tensor<i32, rows> i, kiln::Tensor<i32, 2, 3> j) const {
    auto y = kiln::embedding(i, p<5, 4>(x, "lookups_table")) * x;
    auto z = kiln::gather<1>(p<2, 7, 3>(x, "lookups_a"), j);
    auto large = kiln::embedding(i, p<11, 4>(x, "lookups_large")) * x; // with more rows than there can be indices
    return total(y * y) + weighted(x, "lookups_weighted", z * z) + total(large * large);
  }
  constexpr auto attention(Rows x, kiln::Tensor<i32, 2> n) const {
    auto q = p<2, 3, 8>(x, "attention_q");
    auto k = p<2, 5, 8>(x, "attention_k");
    auto v = p<2, 5, 12>(x, "attention_v");
    auto y = kiln::attention<4>(q, k, v, kiln::mask(p<3, 5>(x, "attention_mask")) | kiln::lengths(n));
    return weighted(x, "attention_weighted", y * y);
  }
  constexpr auto grouped_attention(Rows x) const {
    auto q = p<4, 12>(x, "grouped_attention_q");
    auto k = p<6, 6>(x, "grouped_attention_k");
    auto v = p<6, 4>(x, "grouped_attention_v");
    auto y = kiln::attention<4, 2>(
        q, k, v, kiln::causal | kiln::mask(p<4, 4, 6>(x, "grouped_attention_mask")) | kiln::scale(0.7));
    auto s = kiln::attention_weights<4, 2>(q, k, kiln::causal);
    return weighted(x, "grouped_attention_weighted", y * y) + total(s * s);
  }
  constexpr auto limited_attention(Rows x) const {
    auto q = p<4, 12>(x, "limited_attention_q");
    auto k = p<6, 6>(x, "limited_attention_k");
    auto options =
        kiln::causal | kiln::window(3) | kiln::softcap(1.5) | kiln::mask(p<4, 6>(x, "limited_attention_mask"));
    auto y = kiln::attention<4, 2>(q, k, p<6, 4>(x, "limited_attention_v"), options);
    return weighted(x, "limited_attention_weighted", y * y) +
           total(kiln::attention_weights<4, 2>(q, k, kiln::softcap(2.0)) * p<4, 6>(x, "limited_attention_weights"));
  }
  constexpr auto attention_with_distances(Rows x) const {
    auto q = p<2, 3, 12>(x, "attention_with_distances_q");
    auto k = p<2, 5, 12>(x, "attention_with_distances_k");
    auto y = kiln::attention<4>(q, k, k, kiln::alibi(q, k, p<4>(x, "attention_with_distances_slopes")));
    auto z = kiln::attention<2>(q, k, k,
                                kiln::causal | kiln::distance_bias(q, k, p<5, 2>(x, "attention_with_distances_table")));
    return weighted(x, "attention_with_distances_weighted", y * z);
  }
  constexpr auto attention_with_sinks(Rows x) const {
    auto q = p<2, 4, 12>(x, "attention_with_sinks_q");
    auto k = p<2, 6, 6>(x, "attention_with_sinks_k");
    auto options = kiln::causal | kiln::sinks(p<4>(x, "attention_with_sinks_s"));
    auto y = kiln::attention<4, 2>(q, k, p<2, 6, 4>(x, "attention_with_sinks_v"), options);
    return weighted(x, "attention_with_sinks_weighted", y * y);
  }
  constexpr auto written_out_attention(Rows x) const {
    auto q = kiln::linear(x, p<4, 4>(x, "written_out_attention_q")),
         k = kiln::linear(x, p<4, 4>(x, "written_out_attention_k"));
    auto weights = kiln::softmax(kiln::matmul(q, kiln::transpose<1, 0>(k)) * 0.5);
    auto y = kiln::matmul(weights, kiln::linear(x, p<4, 4>(x, "written_out_attention_v")));
    return total(y * y);
  }

  constexpr auto convolutions(Rows x) const {
    auto image = p<2, 5, 6, 4>(x, "convolutions_image");
    auto y = kiln::conv2d<kiln::Conv2dOptions{.padding = 1}>(image, p<6, 4, 3, 3>(x, "convolutions_weight"),
                                                             p<6>(x, "convolutions_bias"));
    constexpr kiln::Conv2dOptions apart{.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}, .groups = 2};
    auto z = kiln::conv2d<apart>(kiln::tanh(y), p<4, 3, 2, 3>(x, "convolutions_grouped"));
    auto patches = kiln::conv2d<kiln::Conv2dOptions{.stride = 2}>(image, p<3, 4, 2, 2>(x, "convolutions_patches"));
    return weighted(x, "convolutions_weighted", z * z) + total(patches * patches);
  }
  constexpr auto pools(Rows x) const {
    auto image = p<2, 5, 7, 3>(x, "pools_image");
    auto y = kiln::max_pool2d<3, kiln::Pool2dOptions{.stride = 2, .padding = 1}>(image);
    auto z = kiln::avg_pool2d<kiln::Pair(2, 3), kiln::Pool2dOptions{.stride = {1, 2}, .padding = {1, 0}}>(image);
    auto side_by_side = kiln::max_pool2d<2>(image) * kiln::avg_pool2d<2>(image);
    return weighted(x, "pools_max", y * y) + weighted(x, "pools_mean", z * z) + total(side_by_side);
  }
  constexpr auto resizes(Rows x) const {
    auto image = p<2, 3, 4, 5>(x, "resizes_image");
    auto larger = kiln::resize_bilinear<kiln::Pair(7, 4)>(image);
    auto smaller = kiln::resize_bilinear<kiln::Pair(2, 3)>(image);
    return weighted(x, "resizes_larger", larger * larger) + weighted(x, "resizes_smaller", smaller * smaller);
  }

  constexpr auto functions(Rows x) const {
    auto a = p<3, 5>(x, "functions_a");
    auto b = p<1, 5>(x, "functions_b");
    auto y = kiln::sin(a * 3) * kiln::cos(b - a) + kiln::erf(a) * kiln::tan(b) + kiln::expm1(a) * kiln::log1p(b * b);
    auto z = kiln::sinh(a) / kiln::cosh(b) + kiln::log2(a * a + 0.5) * kiln::log10(b * b + 0.25);
    auto sums = total(kiln::logsumexp(a) * p<3>(x, "functions_rows")) + total(kiln::logsumexp<0>(a) * b);
    return sums + weighted(x, "functions_weighted", y + z + kiln::reciprocal(a * a + 1) * kiln::square(b));
  }
  constexpr auto more_activations(Rows x) const {
    auto a = p<3, 5>(x, "more_activations_a") * 4 + 0.01; // steps of the differences do not end at kinks
    auto b = p<5>(x, "more_activations_b");
    auto y = kiln::mish(a) + kiln::selu(a) * kiln::celu(a, 1.5) + kiln::elu(a, 0.5) * b;
    auto z = kiln::log_sigmoid(a) * kiln::softsign(a) + kiln::hard_swish(a) * kiln::hard_sigmoid(a * b);
    return weighted(x, "more_activations_weighted",
                    y + z + kiln::relu6(a) + kiln::hardtanh(a, -2.5, 1.5) * b + kiln::sign(a) * kiln::trunc(a) * b);
  }

  static constexpr auto entries() {
    return std::tuple{
        kiln::gradients("pointwise", &GradientOps::pointwise, {"x"}, {"loss"}),
        kiln::gradients("activations", &GradientOps::activations, {"x"}, {"loss"}),
        kiln::gradients("choices", &GradientOps::choices, {"x"}, {"loss"}),
        kiln::gradients("rows_of_inputs", &GradientOps::rows_of_inputs, {"x"}, {"loss"}),
        kiln::gradients("norms", &GradientOps::norms, {"x"}, {"loss"}),
        kiln::gradients("reductions", &GradientOps::reductions, {"x"}, {"loss"}),
        kiln::gradients("products", &GradientOps::products, {"x"}, {"loss"}),
        kiln::gradients("groups", &GradientOps::groups, {"x", "ends"}, {"loss"}),
        kiln::gradients("movements", &GradientOps::movements, {"x"}, {"loss"}),
        kiln::gradients("lookups", &GradientOps::lookups, {"x", "i", "j"}, {"loss"}),
        kiln::gradients("attention", &GradientOps::attention, {"x", "n"}, {"loss"}),
        kiln::gradients("grouped_attention", &GradientOps::grouped_attention, {"x"}, {"loss"}),
        kiln::gradients("limited_attention", &GradientOps::limited_attention, {"x"}, {"loss"}),
        kiln::gradients("attention_with_distances", &GradientOps::attention_with_distances, {"x"}, {"loss"}),
        kiln::gradients("attention_with_sinks", &GradientOps::attention_with_sinks, {"x"}, {"loss"}),
        kiln::gradients("convolutions", &GradientOps::convolutions, {"x"}, {"loss"}),
        kiln::gradients("pools", &GradientOps::pools, {"x"}, {"loss"}),
        kiln::gradients("resizes", &GradientOps::resizes, {"x"}, {"loss"}),
        kiln::gradients("written_out_attention", &GradientOps::written_out_attention, {"x"}, {"loss"}),
        kiln::gradients("functions", &GradientOps::functions, {"x"}, {"loss"}),
        kiln::gradients("more_activations", &GradientOps::more_activations, {"x"}, {"loss"})};
  }
};

} // namespace specs
