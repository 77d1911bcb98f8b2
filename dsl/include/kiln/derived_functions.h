// SPDX-License-Identifier: Apache-2.0
//
// Functions of one tensor that are composed of others. Their derivatives are PyTorch's, also at kinks.
#pragma once

#include "kiln/derived.h"

namespace kiln {

// --- integers and signs

/// The smallest integer that is not below x.
constexpr auto ceil(const tensor auto &x, Site site = Site::here()) {
  return mul(floor(mul(x, -1, site), site), -1, site);
}

/// x without its fraction.
constexpr auto trunc(const tensor auto &x, Site site = Site::here()) {
  return where(less(x, 0, site), ceil(x, site), floor(x, site), site);
}

/// -1, 0 or 1; 0 for NaN.
template <tensor X> constexpr auto sign(const X &x, Site site = Site::here()) {
  return sub(cast<X::element>(less(0, x, site), site), cast<X::element>(less(x, 0, site), site), site);
}

constexpr auto square(const tensor auto &x, Site site = Site::here()) { return mul(x, x, site); }

/// 1 / x.
constexpr auto reciprocal(const tensor auto &x, Site site = Site::here()) {
  return detail::in_f32(x, site, [&](const auto &a) { return div(1, a, site); });
}

// --- kinds of numbers: comparisons, which targets do not simplify as if there were no NaN

namespace detail {
template <tensor X> constexpr auto as_f32(const X &x, Site site) {
  x.tracer->at(site);
  if constexpr (!floating(X::element))
    x.tracer->fail(rules::unary_c1, typed(x).data());
  return cast<f32>(x, site);
}
} // namespace detail

/// Boolean, as are the following two.
constexpr auto isnan(const tensor auto &x, Site site = Site::here()) {
  auto a = detail::as_f32(x, site);
  return logical_not(logical_or(less_equal(a, 0, site), less(0, a, site), site), site);
}
constexpr auto isinf(const tensor auto &x, Site site = Site::here()) {
  return less(detail::largest_f32, abs(detail::as_f32(x, site), site), site);
}
constexpr auto isfinite(const tensor auto &x, Site site = Site::here()) {
  return less_equal(abs(detail::as_f32(x, site), site), detail::largest_f32, site);
}

// --- trigonometric and hyperbolic functions, logarithms

/// Sine and cosine share their reduced argument, so the quotient is accurate next to poles, too.
constexpr auto tan(const tensor auto &x, Site site = Site::here()) {
  return detail::in_f32(x, site, [&](const auto &a) { return div(sin(a, site), cos(a, site), site); });
}

/// (e^x - e^-x) / 2. The two differences from 1 have different signs, so nothing cancels near 0.
constexpr auto sinh(const tensor auto &x, Site site = Site::here()) {
  return detail::in_f32(
      x, site, [&](const auto &a) { return mul(sub(expm1(a, site), expm1(mul(a, -1, site), site), site), 0.5, site); });
}

/// (e^x + e^-x) / 2.
constexpr auto cosh(const tensor auto &x, Site site = Site::here()) {
  return detail::in_f32(
      x, site, [&](const auto &a) { return mul(add(exp(a, site), exp(mul(a, -1, site), site), site), 0.5, site); });
}

constexpr auto log2(const tensor auto &x, Site site = Site::here()) {
  return detail::in_f32(x, site, [&](const auto &a) { return mul(log(a, site), 1.44269504088896340736, site); });
}
constexpr auto log10(const tensor auto &x, Site site = Site::here()) {
  return detail::in_f32(x, site, [&](const auto &a) { return mul(log(a, site), 0.43429448190325182765, site); });
}

/// log sum exp(x) along the axis, which is dropped. The maximum is subtracted from x if it is finite; its gradients
/// would cancel.
template <int Axis = -1, tensor X> constexpr auto logsumexp(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  if constexpr (!floating(X::element)) {
    x.tracer->fail(rules::logsumexp_c1, detail::typed(x).data());
    return max<Axis>(x, site);
  } else if constexpr (half_float(X::element)) {
    return cast<X::element>(logsumexp<Axis>(cast<f32>(x, site), site), site);
  } else {
    auto most = max<Axis>(x, site);
    auto shift = stop_gradient(where(isfinite(most, site), most, 0, site), site);
    auto powers = exp(sub(x, detail::unsqueezed<Axis>(shift), site), site);
    return add(log(sum<Axis>(powers, site), site), shift, site);
  }
}

// --- activations

/// Limits the elements to [least, most]; NaN stays NaN. Unlike in clamp, the derivative at the bounds is 0.
constexpr auto hardtanh(const tensor auto &x, double least = -1, double most = 1, Site site = Site::here()) {
  x.tracer->at(site);
  if (!(least < most))
    x.tracer->fail(rules::hardtanh_c1, least, most);
  auto raised = where(less_equal(x, least, site), least, x, site);
  return where(less_equal(most, x, site), most, raised, site);
}
constexpr auto relu6(const tensor auto &x, Site site = Site::here()) { return hardtanh(x, 0, 6, site); }

/// min(max(x + 3, 0), 6) / 6.
constexpr auto hard_sigmoid(const tensor auto &x, Site site = Site::here()) {
  return detail::in_f32(x, site,
                        [&](const auto &a) { return mul(hardtanh(add(a, 3, site), 0, 6, site), 1.0 / 6, site); });
}
/// x hard_sigmoid(x) (Howard et al. 2019). The derivative is 0 at -3 and 1 at 3.
constexpr auto hard_swish(const tensor auto &x, Site site = Site::here()) {
  return detail::in_f32(x, site, [&](const auto &a) { return mul(a, hard_sigmoid(a, site), site); });
}

/// x tanh(log(1 + e^x)) (Misra 2019). The factor is w / (w + 2) with w = e^x (e^x + 2), and 1 from far below 20 on.
constexpr auto mish(const tensor auto &x, Site site = Site::here()) {
  return detail::in_f32(x, site, [&](const auto &a) {
    auto power = exp(minimum(a, 20, site), site);
    auto w = mul(power, add(power, 2, site), site);
    return mul(a, div(w, add(w, 2, site), site), site);
  });
}

/// Klambauer et al. 2017.
constexpr auto selu(const tensor auto &x, Site site = Site::here()) {
  return detail::in_f32(
      x, site, [&](const auto &a) { return mul(elu(a, 1.67326324235437728, site), 1.05070098735548049, site); });
}

/// x for x > 0, otherwise alpha (e^(x / alpha) - 1) (Barron 2017). The derivative at 0 is 1.
constexpr auto celu(const tensor auto &x, double alpha = 1, Site site = Site::here()) {
  x.tracer->at(site);
  if (!(alpha > 0))
    x.tracer->fail(rules::celu_c1, alpha);
  return detail::in_f32(x, site, [&](const auto &a) {
    auto is_above = less(0, a, site);
    auto below = expm1(div(where(is_above, 0, a, site), alpha, site), site);
    return where(is_above, a, mul(below, alpha, site), site);
  });
}

/// log(1 / (1 + e^-x)).
constexpr auto log_sigmoid(const tensor auto &x, Site site = Site::here()) {
  return mul(softplus(mul(x, -1, site), site), -1, site);
}

/// x / (1 + |x|).
constexpr auto softsign(const tensor auto &x, Site site = Site::here()) {
  return detail::in_f32(x, site, [&](const auto &a) { return div(a, add(1, abs(a, site), site), site); });
}

} // namespace kiln
