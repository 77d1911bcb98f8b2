// SPDX-License-Identifier: Apache-2.0
//
// Composite operations: the language has a name for them, but a graph has no node for them.
#pragma once

#include <limits>

#include "kiln/contraction.h"
#include "kiln/image.h"
#include "kiln/movement.h"
#include "kiln/rows.h"
#include "kiln/scan.h"
#include "kiln/sources.h"

namespace kiln {

// --- comparisons, logic

template <class A, class B>
  requires operands<A, B>
constexpr auto greater(const A &a, const B &b, Site site = Site::here()) {
  return less(b, a, site);
}
template <class A, class B>
  requires operands<A, B>
constexpr auto greater_equal(const A &a, const B &b, Site site = Site::here()) {
  return less_equal(b, a, site);
}
constexpr auto logical_not(const tensor auto &x, Site site = Site::here()) { return logical_xor(x, 1, site); }
/// True for NaN, which is not equal to anything.
template <class A, class B>
  requires operands<A, B>
constexpr auto not_equal(const A &a, const B &b, Site site = Site::here()) {
  return logical_not(equal(a, b, site), site);
}
template <class A, class B>
  requires operands<A, B>
constexpr auto operator!=(const A &a, const B &b) {
  return not_equal(a, b, Site());
}

// --- elementwise

/// |x|; for i32, |least| wraps around to least.
template <tensor X> constexpr auto abs(const X &x, Site site = Site::here()) {
  if constexpr (info(X::element).kind == ElementKind::integer)
    return maximum(x, sub(0, x, site), site);
  else
    return detail::unary<Op::abs>(x, site);
}

/// Limits the elements to [least, most]; NaN stays NaN. This function uses `where` rather than `maximum`: an element
/// that equals a bound receives the whole gradient of the result, whereas `maximum` would split it.
constexpr auto clamp(const tensor auto &x, double least, double most, Site site = Site::here()) {
  x.tracer->at(site);
  if (!(least <= most))
    x.tracer->fail(rules::clamp_c1, least, most);
  auto raised = where(less(x, least, site), least, x, site);
  return where(less(most, x, site), most, raised, site);
}

/// 1 / sqrt(x).
constexpr auto rsqrt(const tensor auto &x, Site site = Site::here()) { return div(1, sqrt(x, site), site); }

/// x for x > 0, otherwise slope * x. The derivative at 0 is `slope`.
constexpr auto leaky_relu(const tensor auto &x, double slope = 0.01, Site site = Site::here()) {
  return where(less(0, x, site), x, mul(x, slope, site), site);
}

namespace detail {

/// Applies a function to x, or to x in f32 if it has 16-bit floats, which rounds the result once. The result has the
/// type of x.
template <tensor X> constexpr auto in_f32(const X &x, Site site, auto function) {
  x.tracer->at(site);
  if constexpr (!floating(X::element)) {
    x.tracer->fail(rules::unary_c1, typed(x).data());
    return x;
  } else if constexpr (half_float(X::element)) {
    return cast<X::element>(function(cast<f32>(x, site)), site);
  } else {
    return function(x);
  }
}

} // namespace detail

/// x for x > 0, otherwise alpha (e^x - 1) (Clevert et al. 2015). The derivative at 0 is that of the lower branch.
constexpr auto elu(const tensor auto &x, double alpha = 1, Site site = Site::here()) {
  return detail::in_f32(x, site, [&](const auto &a) {
    auto is_above = less(0, a, site);
    auto below = mul(expm1(where(is_above, 0, a, site), site), alpha, site);
    return where(is_above, a, below, site);
  });
}

namespace detail {

/// A constant, expanded to a Shape.
template <ElementType E, auto Extents> constexpr auto filled(Tracer *tracer, double value) {
  return emit<TensorOf<E, Extents>>(tracer, Op::expand, {number<E>(tracer, value).node});
}

/// x to an integer power, by repeated squaring from the highest bit down.
template <tensor X> constexpr auto integer_power(const X &x, int whole, Site site) {
  auto power = x;
  int bit = 64;
  while (bit > 1 && !(whole & bit))
    bit /= 2;
  for (bit /= 2; bit > 0; bit /= 2) {
    power = mul(power, power, site);
    if (whole & bit)
      power = mul(power, x, site);
  }
  return power;
}

constexpr double largest_f32 = 0x1.fffffep127;

/// Whether x is 0 or +infinity.
constexpr auto zero_or_infinite(const tensor auto &x, Site site) {
  return logical_or(equal(x, 0, site), less(largest_f32, x, site), site);
}

} // namespace detail

/// x to a constant power: multiplications for integers up to 64 in magnitude, of 1 / x below 0; a square root for 1/2;
/// otherwise exp(exponent log x), of |x| for integers. There the derivative y / x would be 0 / 0 or inf / inf where x
/// is 0 or infinite, and a product or a root with the same limits takes its place. Each formula reads only its own
/// elements of x.
template <tensor X> constexpr X pow(const X &x, double exponent, Site site = Site::here()) {
  if constexpr (half_float(X::element)) // rounded once
    return cast<X::element>(pow(cast<f32>(x, site), exponent, site), site);
  const double size = exponent < 0 ? -exponent : exponent;
  const int whole = size < 0x1p24 ? static_cast<int>(size) : 0; // integers from 2^24 on are even in f32
  const bool is_integer = size >= 0x1p24 || size == whole, is_odd = is_integer && whole % 2 == 1;
  auto inverse_below_0 = [&](const X &base) -> X { return exponent < 0 ? X(div(1, base, site)) : base; };
  if (exponent == 0)
    return detail::filled<X::element, X::shape>(x.tracer, 1);
  if (size == 0.5)
    return inverse_below_0(sqrt(x, site));
  if (is_integer && size <= 64)
    return detail::integer_power(inverse_below_0(x), whole, site);
  auto is_limit = detail::zero_or_infinite(is_integer ? X(abs(x, site)) : x, site);
  auto other = where(is_limit, 1, x, site), limit = inverse_below_0(where(is_limit, x, 1, site));
  // Unlike that of abs, the derivative of this magnitude is NaN for NaN.
  auto magnitude = [&] { return X(where(less(other, 0, site), mul(other, -1, site), other, site)); };
  auto power = exp(mul(log(is_integer ? magnitude() : other, site), exponent, site), site);
  if (is_odd)
    power = where(less(other, 0, site), mul(power, -1, site), power, site);
  if (exponent > 0 && exponent < 1)
    return where(is_limit, sqrt(limit, site), power, site);
  return where(is_limit, detail::integer_power(limit, is_odd ? 3 : 2, site), power, site);
}

/// Element-wise a to the power b for a >= 0; NaN for a negative a unless b is 0. Where a is 0 or infinite, formulas
/// with the same limits compute the power, as above. `a` to the power 0 and 1 to the power `b` are 1, also for
/// infinities and NaN.
template <tensor A, tensor B> constexpr auto pow(const A &a, const B &b, Site site = Site::here()) {
  if constexpr (half_float(A::element) && B::element == A::element) { // rounded once
    return cast<A::element>(pow(cast<f32>(a, site), cast<f32>(b, site), site), site);
  } else {
    auto is_positive = logical_and(less(0, a, site), less_equal(a, detail::largest_f32, site), site);
    auto is_finite = less_equal(abs(b, site), detail::largest_f32, site);
    auto is_one = logical_or(logical_and(equal(b, 0, site), logical_not(is_positive, site), site),
                             logical_and(equal(a, 1, site), logical_not(is_finite, site), site), site);
    auto is_limit = logical_and(detail::zero_or_infinite(a, site), logical_not(is_one, site), site);
    auto is_other = logical_not(logical_or(is_one, is_limit, site), site);
    auto power = exp(mul(log(where(is_other, a, 1, site), site), where(is_other, b, 0, site), site), site);
    auto within = [&](const auto &is_within) { return logical_and(is_limit, is_within, site); };
    auto is_negative = within(less(b, 0, site)), is_same = within(equal(b, 1, site)),
         is_more = within(less(1, b, site));
    auto is_part = within(logical_and(less(0, b, site), less(b, 1, site), site));
    auto only = [&](const auto &is_here) { return where(is_here, a, 1, site); };
    auto inverse = div(1, only(is_negative), site);
    auto steep =
        where(is_negative, mul(inverse, inverse, site), where(is_same, only(is_same), b, site), site); // or NaN
    auto square = where(is_more, mul(only(is_more), only(is_more), site), steep, site);
    auto limit = where(is_part, sqrt(only(is_part), site), square, site);
    auto slope = where(within(is_finite), abs(b, site), 1, site); // does not change the limit, but has its derivative
    return where(is_limit, mul(limit, slope, site), power, site);
  }
}

/// The i32 remainder of a / b with the sign of a, as % in C. The result is a where b is 0.
template <class A, class B>
  requires operands<A, B>
constexpr auto remainder(const A &a, const B &b, Site site = Site::here()) {
  auto [left, right] = detail::as_tensors(a, b);
  left.tracer->at(site);
  if constexpr (decltype(left)::element != i32)
    left.tracer->fail(rules::remainder_c1, detail::typed(left, right).data());
  return sub(left, mul(div(left, right, site), right, site), site);
}

// --- rows

namespace detail {

template <ElementType E, Dim... Extents>
constexpr auto constant_of(const tensor auto &context, std::vector<double> values) {
  Attributes attributes;
  attributes.values = std::move(values);
  return emit<Tensor<E, Extents...>>(context.tracer, Op::constant, {}, std::move(attributes));
}

} // namespace detail

// Composite operations that accumulate compute 16-bit floats in f32 and round the result once.

/// x / max(sqrt(sum of squares), epsilon) along the axis.
template <int Axis = -1, tensor X>
constexpr auto l2_normalize(const X &x, double epsilon = 1e-12, Site site = Site::here()) {
  x.tracer->at(site);
  if (!(epsilon > 0))
    x.tracer->fail(rules::l2_normalize_c1, epsilon);
  if constexpr (half_float(X::element))
    return cast<X::element>(l2_normalize<Axis>(cast<f32>(x, site), epsilon, site), site);
  else {
    // The square root has no derivative at 0: a row of zeros is divided by epsilon, and no gradient goes through the
    // root.
    auto squares = sum<Axis>(mul(x, x, site), site);
    auto is_zero = equal(squares, 0, site);
    auto root = where(is_zero, 0, sqrt(where(is_zero, 1, squares, site), site), site);
    auto norm = where(less(root, epsilon, site), epsilon, root, site);
    return div(x, detail::unsqueezed<Axis>(norm), site);
  }
}

namespace detail {
/// Keeps the elements of matrices [..., M, N] for which `keeps(columns, rows)` is true, with i32 [N] and [M, 1], and
/// sets the others to zero.
template <int Diagonal, tensor X> constexpr auto triangle(const X &x, auto keeps, Site site) {
  x.tracer->at(site);
  if constexpr (X::rank < 2) {
    x.tracer->fail(rules::tril_c1, typed(x).data());
    return x;
  } else {
    auto rows = unsqueezed<1>(add(positions<-2>(x, site), Diagonal, site));
    return where(keeps(positions<-1>(x, site), rows), x, 0, site);
  }
}
} // namespace detail

/// Lower triangle of matrices [..., M, N]: keeps column j of row i if j <= i + Diagonal, zeros elsewhere.
template <int Diagonal = 0, tensor X> constexpr auto tril(const X &x, Site site = Site::here()) {
  return detail::triangle<Diagonal>(
      x, [&](const auto &columns, const auto &rows) { return less_equal(columns, rows, site); }, site);
}
/// Upper triangle: keeps column j of row i if j >= i + Diagonal, zeros elsewhere.
template <int Diagonal = 0, tensor X> constexpr auto triu(const X &x, Site site = Site::here()) {
  return detail::triangle<Diagonal>(
      x, [&](const auto &columns, const auto &rows) { return less_equal(rows, columns, site); }, site);
}

} // namespace kiln
