// SPDX-License-Identifier: Apache-2.0
//
// Operations along one axis: softmax, normalisation, reductions.
#pragma once

#include "kiln/movement.h"

namespace kiln {

/// Whether the result of a reduction has the axis, with extent 1: `sum<1, keepdim>(x)`.
enum class ReducedAxis { dropped, kept };
inline constexpr ReducedAxis keepdim = ReducedAxis::kept;

namespace detail {

template <Op O, int Axis, tensor X> constexpr auto softmax(const X &x, Site site) {
  x.tracer->at(site);
  if constexpr (!floating(X::element))
    x.tracer->fail(rules::softmax_c2, typed(x).data());
  return emit<TensorOf<X::element, X::shape>>(x.tracer, O, {x.node}, along<Axis>(x, rules::softmax_c1));
}

/// `option`: an attribute to set, if any.
template <Op O, int Axis, ElementType E, ReducedAxis Reduced = ReducedAxis::dropped, tensor X>
constexpr auto reduce(const X &x, Site site, bool Attributes::*option = nullptr) {
  x.tracer->at(site);
  if constexpr (X::element == boolean)
    x.tracer->fail(rules::reduction_c3, typed(x).data());
  using Result = TensorOf<E, without_axis(X::shape, Axis)>;
  Attributes attributes = along<Axis>(x, rules::reduction_c1);
  if (option != nullptr)
    attributes.*option = true;
  auto reduced = emit<Result>(x.tracer, O, {x.node}, std::move(attributes));
  if constexpr (Reduced == ReducedAxis::kept)
    return unsqueezed<Axis>(reduced);
  else
    return reduced;
}

/// The mean. `shifted`: that of the differences from the first element, plus that element (the shifted data algorithm,
/// Chan, Golub and LeVeque 1983). It is exact for equal elements, while a sum of large ones loses digits, which a norm
/// divides by a small deviation. If the first element is k deviations from the mean, the error of the normalised
/// elements, one of which is k, grows by k roundings.
template <int Axis, tensor X> constexpr auto mean_along(const X &x, bool shifted, Site site) {
  return reduce<Op::mean, Axis, X::element>(x, site, shifted ? &Attributes::shifted : nullptr);
}

} // namespace detail

/// exp(x - max) / sum exp(x - max) along the axis.
template <int Axis = -1, tensor X> constexpr auto softmax(const X &x, Site site = Site::here()) {
  return detail::softmax<Op::softmax, Axis>(x, site);
}
/// x - max - log sum exp(x - max) along the axis.
template <int Axis = -1, tensor X> constexpr auto log_softmax(const X &x, Site site = Site::here()) {
  return detail::softmax<Op::log_softmax, Axis>(x, site);
}

/// (x - mean) / sqrt(variance + epsilon) * weight + bias over the last axis.
template <tensor X, tensor W, tensor B>
constexpr auto layer_norm(const X &x, const W &weight, const B &bias, double epsilon = 1e-5, Site site = Site::here()) {
  Tracer *tracer = x.tracer;
  tracer->at(site);
  constexpr Shape<1> width{{detail::last(X::shape)}};
  if constexpr (X::rank < 1 || !detail::same_shape(W::shape, width))
    tracer->fail(rules::layer_norm_c1, detail::last(X::shape), detail::last(W::shape));
  if constexpr (!detail::same_shape(B::shape, W::shape))
    tracer->fail(rules::layer_norm_c2, B::shape, W::shape);
  if (!(epsilon > 0))
    tracer->fail(rules::layer_norm_c3, epsilon);
  if constexpr (W::element != X::element || B::element != X::element || !floating(X::element))
    tracer->fail(rules::layer_norm_c4, detail::typed(x, weight, bias).data());
  Attributes attributes;
  attributes.epsilon = epsilon;
  using Result = TensorOf<X::element, X::shape>;
  return detail::emit<Result>(tracer, Op::layer_norm, {x.node, weight.node, bias.node}, std::move(attributes));
}

/// x / sqrt(mean of squares + epsilon) * weight over the last axis.
template <tensor X, tensor W>
constexpr auto rms_norm(const X &x, const W &weight, double epsilon = 1e-6, Site site = Site::here()) {
  Tracer *tracer = x.tracer;
  tracer->at(site);
  constexpr Shape<1> width{{detail::last(X::shape)}};
  if constexpr (X::rank < 1 || !detail::same_shape(W::shape, width))
    tracer->fail(rules::rms_norm_c1, detail::last(X::shape), detail::last(W::shape));
  if (!(epsilon > 0))
    tracer->fail(rules::rms_norm_c2, epsilon);
  if constexpr (W::element != X::element || !floating(X::element))
    tracer->fail(rules::rms_norm_c3, detail::typed(x, weight).data());
  Attributes attributes;
  attributes.epsilon = epsilon;
  using Result = TensorOf<X::element, X::shape>;
  return detail::emit<Result>(tracer, Op::rms_norm, {x.node, weight.node}, std::move(attributes));
}

/// Reductions drop their axis, or keep it with `keepdim`. NaN is larger than any number.
template <int Axis = -1, ReducedAxis Reduced = ReducedAxis::dropped, tensor X>
constexpr auto mean(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  if constexpr (!floating(X::element))
    x.tracer->fail(rules::reduction_c2, detail::typed(x).data());
  return detail::reduce<Op::mean, Axis, X::element, Reduced>(x, site);
}
template <int Axis = -1, ReducedAxis Reduced = ReducedAxis::dropped, tensor X>
constexpr auto max(const X &x, Site site = Site::here()) {
  return detail::reduce<Op::max, Axis, X::element, Reduced>(x, site);
}
template <int Axis = -1, ReducedAxis Reduced = ReducedAxis::dropped, tensor X>
constexpr auto sum(const X &x, Site site = Site::here()) {
  return detail::reduce<Op::sum, Axis, X::element, Reduced>(x, site);
}
/// i32; the index of the first maximum.
template <int Axis = -1, ReducedAxis Reduced = ReducedAxis::dropped, tensor X>
constexpr auto argmax(const X &x, Site site = Site::here()) {
  return detail::reduce<Op::argmax, Axis, i32, Reduced>(x, site);
}

/// Inclusive prefix sum along the axis, added in order.
template <int Axis = -1, tensor X> constexpr auto cumsum(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  if constexpr (X::element == boolean)
    x.tracer->fail(rules::reduction_c3, detail::typed(x).data());
  return detail::emit<TensorOf<X::element, X::shape>>(x.tracer, Op::cumsum, {x.node},
                                                      detail::along<Axis>(x, rules::reduction_c1));
}

/// Samples from softmax(x) along the axis, i32: argmax(x - log(-log(uniform))), for independent uniform numbers in (0,
/// 1) that the caller supplies, broadcastable with x (Gumbel 1954; Maddison et al. 2014). Hard attention gathers the
/// sampled elements.
template <int Axis = -1, tensor X, tensor U>
constexpr auto gumbel_max(const X &x, const U &uniform, Site site = Site::here()) {
  return argmax<Axis>(sub(x, log(sub(0.0, log(uniform, site), site), site), site), site);
}

} // namespace kiln
