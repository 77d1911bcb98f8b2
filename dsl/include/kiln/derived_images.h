// SPDX-License-Identifier: Apache-2.0
//
// Composite operations on images and signals, like those of derived.h.
#pragma once

#include "kiln/derived_movement.h"

namespace kiln {

namespace detail {
template <ElementType E, tensor X> constexpr auto converted(const X &x, Site site) {
  if constexpr (X::element == E)
    return x;
  else
    return cast<E>(x, site);
}

/// Normalises x, viewed as `Parts`, by its mean and standard deviation, computed as E. `over(values, shifted, then)`
/// computes the means of values, applies `then`, and broadcasts the result to Parts. Conversions are between the views
/// and the arithmetic, since no kernel extends beyond a view.
template <auto Parts, ElementType E, tensor X, tensor W, tensor B>
constexpr auto normalized(const X &x, const W &weight, const B &bias, double epsilon, const auto &over, Site site) {
  auto parts = converted<E>(viewed<Parts>(x), site);
  auto middle = over(parts, true, [](const auto &mean) { return mean; });
  auto off = sub(middle, parts,
                 site); // not the difference that the result uses, so that neither of them is stored for both uses
  auto scale =
      over(mul(off, off, site), false, [&](const auto &mean) { return rsqrt(add(mean, epsilon, site), site); });
  auto scaled = mul(mul(sub(parts, middle, site), scale, site), converted<E>(weight, site), site);
  return viewed<X::shape>(converted<X::element>(add(scaled, converted<E>(bias, site), site), site));
}

/// group_norm of an image whose dimensions except the last are `Rows`, [..., pixels]. Means over equally many elements
/// are computed axis by axis. The kernels vectorise along the channels of a group or, if a group has few channels,
/// along all channels, each of which then holds the mean of its group.
template <std::int64_t Groups, auto Rows, ElementType E, tensor X, tensor W, tensor B>
constexpr auto group_norm_of(const X &x, const W &weight, const B &bias, double epsilon, Site site) {
  constexpr Dim channels = last(X::shape), width = channels.offset / Groups;
  constexpr int rank = Rows.size();
  constexpr auto groups = appended(appended(leading<1>(Rows), Groups), width);
  constexpr std::int64_t vector = 8;
  if constexpr (width.offset >= vector) {
    constexpr Shape<2> split{{Groups, width}};
    auto over = [&](const auto &values, bool shifted, auto then) {
      auto means = mean_along<-1>(mean_along<rank - 1>(values, shifted, site), shifted, site);
      return unsqueezed<rank - 1>(unsqueezed<-1>(then(means)));
    };
    return normalized<appended(appended(Rows, Groups), width), E>(x, viewed<split>(weight), viewed<split>(bias),
                                                                  epsilon, over, site);
  } else {
    auto over = [&](const auto &values, bool shifted, auto then) {
      auto columns = mean_along<rank - 1>(values, shifted, site);
      if constexpr (width.offset == 1) {
        return unsqueezed<rank - 1>(then(columns));
      } else {
        auto means = repeated<groups>(unsqueezed<-1>(then(mean_along<-1>(viewed<groups>(columns), shifted, site))));
        return unsqueezed<rank - 1>(viewed<appended(leading<1>(Rows), channels)>(means));
      }
    };
    return normalized<appended(Rows, channels), E>(x, weight, bias, epsilon, over, site);
  }
}
} // namespace detail

/// (x - mean) / sqrt(variance + epsilon) * weight + bias for an image [..., H, W, C]; mean and variance are those of
/// each of `Groups` equal groups of channels over the whole image (Wu and He 2018).
template <std::int64_t Groups, tensor X, tensor W, tensor B>
constexpr auto group_norm(const X &x, const W &weight, const B &bias, double epsilon = 1e-5, Site site = Site::here()) {
  x.tracer->at(site);
  constexpr Dim channels = detail::last(X::shape);
  constexpr bool is_image = X::rank >= 3 && channels.fixed() && Groups >= 1 && channels.offset % Groups == 0 &&
                            Dim::multipliable(detail::last(X::shape, 3), detail::last(X::shape, 2));
  if constexpr (!is_image)
    x.tracer->fail(rules::group_norm_c1, detail::typed(x).data(), Text().put(Groups).put(" groups of channels").data());
  if (!(epsilon > 0))
    x.tracer->fail(rules::group_norm_c2, epsilon);
  constexpr Shape<1> width{{channels}};
  if constexpr (!detail::same_shape(W::shape, width) || !detail::same_shape(B::shape, width))
    x.tracer->fail(rules::group_norm_c3, detail::typed(weight, bias).data(), width);
  if constexpr (!is_image)
    return x;
  else {
    constexpr Dim pixels = detail::last(X::shape, 3) * detail::last(X::shape, 2);
    constexpr bool is_half = half_float(X::element) && X::element == W::element && X::element == B::element;
    return detail::group_norm_of<Groups, detail::appended(detail::leading<3>(X::shape), pixels),
                                 is_half ? f32 : X::element>(x, weight, bias, epsilon, site);
  }
}

/// group_norm with one channel per group (Ulyanov et al. 2016).
template <tensor X, tensor W, tensor B>
constexpr auto instance_norm(const X &x, const W &weight, const B &bias, double epsilon = 1e-5,
                             Site site = Site::here()) {
  return group_norm<detail::last(X::shape).offset>(x, weight, bias, epsilon, site);
}

struct Conv1dOptions {
  int stride = 1, padding = 0, dilation = 1, groups = 1;
};

namespace detail {
/// Views a signal [..., T, C] as an image of one row; as_row_weight does so for a weight [O, C / groups, k].
template <tensor X> constexpr auto as_row(const X &x) {
  return viewed<appended(appended(appended(leading<2>(X::shape), 1), last(X::shape, 2)), last(X::shape))>(x);
}
template <tensor W> constexpr auto as_row_weight(const W &weight) {
  return viewed<appended(appended(leading<1>(W::shape), 1), last(W::shape))>(weight);
}
template <tensor Y> constexpr auto as_signal(const Y &y) {
  return viewed<appended(appended(leading<3>(Y::shape), last(Y::shape, 2)), last(Y::shape))>(y);
}
constexpr Conv2dOptions of_row(const Conv1dOptions &options) {
  return {Pair(1, options.stride), Pair(0, options.padding), Pair(1, options.dilation), options.groups};
}
/// Returns false and reports an error unless x is a signal and the weight is that of a 1-d convolution.
template <tensor X, tensor W> constexpr bool check_signal(const X &x, const W &weight) {
  constexpr bool fits = X::rank >= 2 && W::rank == 3;
  if constexpr (!fits)
    x.tracer->fail(rules::conv1d_c1, typed(x, weight).data());
  return fits;
}
} // namespace detail

/// 1-d convolution: x [..., T, C], weight [O, C / groups, k] -> [..., T', O].
template <Conv1dOptions Options = Conv1dOptions{}, tensor X, tensor W>
constexpr auto conv1d(const X &x, const W &weight, Site site = Site::here()) {
  x.tracer->at(site);
  detail::check_signal(x, weight);
  if constexpr (X::rank >= 2 && W::rank == 3)
    return detail::as_signal(conv2d<detail::of_row(Options)>(detail::as_row(x), detail::as_row_weight(weight), site));
  else
    return x;
}
template <Conv1dOptions Options = Conv1dOptions{}, tensor X, tensor W, tensor B>
constexpr auto conv1d(const X &x, const W &weight, const B &bias, Site site = Site::here()) {
  x.tracer->at(site);
  detail::check_signal(x, weight);
  if constexpr (X::rank >= 2 && W::rank == 3)
    return detail::as_signal(
        conv2d<detail::of_row(Options)>(detail::as_row(x), detail::as_row_weight(weight), bias, site));
  else
    return x;
}

} // namespace kiln
