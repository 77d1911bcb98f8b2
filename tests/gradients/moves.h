// SPDX-License-Identifier: Apache-2.0
//
// A gradient entry for each group of composite operations that move, sort or resample elements, for equations and for
// angles; the losses are like those of ops.h.
#pragma once

#include "ops.h"

namespace specs {

struct GradientMoves : kiln::Model {
  using Rows = GradientOps::Rows;

  template <kiln::Dim... E> static constexpr auto p(const Rows &x, const char *name) {
    return GradientOps::p<E...>(x, name);
  }

  constexpr auto pads(Rows x) const {
    using kiln::PadMode;
    auto a = p<3, 5>(x, "pads_a");
    auto longer = kiln::concat<0>(x * p<4>(x, "pads_scale"), p<3, 4>(x, "pads_rows"));
    auto y = kiln::pad<1, 4, 1, PadMode::reflect>(a) * kiln::pad<1, 3, 2, PadMode::edge>(a) +
             kiln::pad<1, 0, 5, PadMode::wrap>(a);
    auto dynamic = kiln::pad<0, 2, 1, PadMode::reflect>(longer) * kiln::pad<0, 0, 3, PadMode::edge>(longer) +
                   kiln::pad<0, 3, 0, PadMode::wrap>(longer);
    return GradientOps::weighted(x, "pads_weighted", y * y) + total(dynamic * dynamic * p<4>(x, "pads_weights"));
  }
  /// The first shift of rows is by slices, the second by a look-up.
  constexpr auto shifts(Rows x) const {
    auto a = p<3, 5>(x, "shifts_a");
    auto longer = kiln::concat<0>(x * p<4>(x, "shifts_scale"), p<3, 4>(x, "shifts_rows"));
    auto rolled = kiln::roll<0, 2>(longer) * kiln::roll<0, -7>(longer) * longer;
    auto taken = kiln::take_along_axis<1>(a, kiln::constant<kiln::i32, 3, 4>(x, {4, 0, 0, 1, 9, 2, 2, 2, -3, 1, 3, 3}));
    auto row = kiln::take_along_axis<0>(longer, kiln::constant<kiln::i32, 1, 4>(x, {1, 0, 2, 1}));
    auto y = kiln::roll<1, 3>(a) * kiln::sum<0, kiln::keepdim>(a) / (kiln::max<1, kiln::keepdim>(kiln::exp(a)) + 1);
    return GradientOps::weighted(x, "shifts_weighted", y) + GradientOps::weighted(x, "shifts_taken", taken * taken) +
           total(rolled * p<4>(x, "shifts_weights")) + total(row * row);
  }
  /// The rows of x, of a dynamic number, are added to three rows.
  constexpr auto sums_by_index(Rows x) const {
    auto rows = kiln::index_add<1>(p<2, 6, 5>(x, "sums_by_index_a"), kiln::constant<kiln::i32, 3>(x, {4, 0, 4}),
                                   p<2, 3, 5>(x, "sums_by_index_b"));
    auto elements = kiln::scatter_add(p<3, 5>(x, "sums_by_index_c"),
                                      kiln::constant<kiln::i32, 3, 4>(x, {4, 0, 0, 1, 9, 2, 2, 2, -3, 1, 3, 3}),
                                      p<3, 4>(x, "sums_by_index_d"));
    auto dynamic = kiln::index_add(p<3, 4>(x, "sums_by_index_e"), kiln::remainder(kiln::positions<0>(x), 3),
                                   x * p<4>(x, "sums_by_index_scale"));
    return GradientOps::weighted(x, "sums_by_index_rows", rows * rows) +
           GradientOps::weighted(x, "sums_by_index_elements", elements * elements) + total(dynamic * dynamic);
  }
  constexpr auto sorts(Rows x) const {
    auto a = p<3, 6>(x, "sorts_a");
    auto y = kiln::sort(a).first * kiln::sort<0, kiln::SortOrder::descending>(a).first;
    auto rows = kiln::sort<0>(x * p<4>(x, "sorts_scale")).first;
    auto first = kiln::slice<0, 0, 1>(rows) * p<4>(x, "sorts_weights");
    return GradientOps::weighted(x, "sorts_weighted", y) + total(first * rows);
  }
  constexpr auto patches(Rows x) const {
    auto image = p<1, 4, 6, 8>(x, "patches_image");
    constexpr kiln::UnfoldOptions options{.stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}};
    auto shuffled = kiln::pixel_shuffle<2>(image);
    auto columns = kiln::unfold<kiln::Pair(3, 2), options>(image);
    auto folded = kiln::fold<4, 6, kiln::Pair(3, 2), options>(columns * columns);
    return GradientOps::weighted(x, "patches_weighted", shuffled * shuffled) +
           GradientOps::weighted(x, "patches_folded", folded) +
           GradientOps::weighted(x, "patches_unshuffled", kiln::pixel_unshuffle<2>(image * image));
  }
  constexpr auto transposed(Rows x) const {
    constexpr kiln::ConvTranspose2dOptions options{.stride = {2, 3}, .padding = {0, 1}, .groups = 2};
    auto image =
        kiln::conv_transpose2d<options>(p<1, 2, 3, 4>(x, "transposed_image"), p<4, 1, 3, 4>(x, "transposed_kernel"));
    auto signal = kiln::conv_transpose1d<kiln::ConvTranspose1dOptions{.stride = 2, .padding = 1}>(
        p<1, 5, 2>(x, "transposed_signal"), p<2, 3, 4>(x, "transposed_taps"));
    return GradientOps::weighted(x, "transposed_weighted", image * image) +
           GradientOps::weighted(x, "transposed_signals", signal * signal);
  }
  constexpr auto resamples(Rows x) const {
    auto image = p<1, 3, 4, 2>(x, "resamples_image");
    auto nearest = kiln::resize_nearest<kiln::Pair(5, 8)>(image);
    auto cubic = kiln::resize_bicubic<kiln::Pair(2, 7)>(image);
    auto smooth = kiln::resize_bicubic<kiln::Pair(2, 3), kiln::antialias>(image);
    auto linear = kiln::resize_bilinear<kiln::Pair(1, 5), kiln::antialias>(image);
    auto sampled = kiln::grid_sample(image, p<1, 2, 3, 2>(x, "resamples_grid"));
    return GradientOps::weighted(x, "resamples_nearest", nearest * nearest) +
           GradientOps::weighted(x, "resamples_cubic", cubic * cubic) +
           GradientOps::weighted(x, "resamples_smooth", smooth * smooth) +
           GradientOps::weighted(x, "resamples_linear", linear * linear) +
           GradientOps::weighted(x, "resamples_sampled", sampled);
  }
  constexpr auto equations(Rows x) const {
    auto a = p<2, 3, 4>(x, "equations_a");
    auto b = p<3, 2, 5>(x, "equations_b");
    auto y = kiln::einsum<"ijk,jil->kil">(a, b);
    auto z = kiln::einsum<"ijk,lk->lij">(a, p<6, 4>(x, "equations_weight"));
    auto products = kiln::einsum<"ijk,jil->kj">(a, b) + kiln::einsum<"ijk->kj">(a);
    auto rows = kiln::einsum<"tc,sc->ts">(x * p<4>(x, "equations_scale"), p<3, 4>(x, "equations_rows"));
    return GradientOps::weighted(x, "equations_weighted", y * y) + total(z * z) +
           GradientOps::weighted(x, "equations_products", products) + total(rows * rows);
  }
  /// Angles of positions that are parameters: of powers of a base, of several axes, and for a rotation.
  constexpr auto angles(Rows x) const {
    auto powers = kiln::sinusoidal<6>(p<2, 5>(x, "angles_positions"), 2.0);
    auto axes = kiln::sinusoidal(p<2, 3>(x, "angles_axes"), kiln::frequencies<8>(2).sections({3, 1}));
    auto line = kiln::sinusoidal(kiln::sum<1>(x * p<4>(x, "angles_scale")), kiln::frequencies(std::array{1.5}));
    auto rows = kiln::rotary<1, kiln::RotaryPairs::adjacent>(x * p<4>(x, "angles_rows"), line);
    auto turned = kiln::rotary<2>(p<2, 5, 16>(x, "angles_x"), powers * powers);
    return GradientOps::weighted(x, "angles_weighted", powers) +
           GradientOps::weighted(x, "angles_of_axes", axes * axes) + GradientOps::weighted(x, "angles_turned", turned) +
           total(rows * p<4>(x, "angles_last"));
  }

  static constexpr auto entries() {
    return std::tuple{kiln::gradients("pads", &GradientMoves::pads, {"x"}, {"loss"}),
                      kiln::gradients("shifts", &GradientMoves::shifts, {"x"}, {"loss"}),
                      kiln::gradients("sums_by_index", &GradientMoves::sums_by_index, {"x"}, {"loss"}),
                      kiln::gradients("sorts", &GradientMoves::sorts, {"x"}, {"loss"}),
                      kiln::gradients("patches", &GradientMoves::patches, {"x"}, {"loss"}),
                      kiln::gradients("transposed", &GradientMoves::transposed, {"x"}, {"loss"}),
                      kiln::gradients("resamples", &GradientMoves::resamples, {"x"}, {"loss"}),
                      kiln::gradients("equations", &GradientMoves::equations, {"x"}, {"loss"}),
                      kiln::gradients("angles", &GradientMoves::angles, {"x"}, {"loss"})};
  }
};

} // namespace specs
