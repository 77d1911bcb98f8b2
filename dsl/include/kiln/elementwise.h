// SPDX-License-Identifier: Apache-2.0
//
// Elementwise operations, and the helpers of all operations. An operation checks its constraints, then appends one
// node. If a rule is broken, the operation records the error and still returns the type that the result should have
// had.
#pragma once

#include "kiln/shapes.h"

namespace kiln {

namespace detail {

template <class Result>
constexpr Result emit(Tracer *tracer, Op op, std::vector<int> &&operands, Attributes &&attributes = {}) {
  if constexpr (!Result::sound)
    tracer->declare(Result::shape);
  return Result(tracer, tracer->add({op,
                                     Result::element,
                                     {Result::shape.begin(), Result::shape.end()},
                                     std::move(operands),
                                     std::move(attributes)}));
}

/// "f32[tokens 1..1024, 768]".
template <tensor X> constexpr Text typed(const X &) { return Text().put(X::element).put(X::shape); }

/// "f32[3, 4] and f32[4]".
template <tensor X, tensor... Others> constexpr Text typed(const X &x, const Others &...others) {
  Text text = typed(x);
  (text.put(" and ").put(typed(others).data()), ...);
  return text;
}

/// Returns the attributes of an operation along an axis; an axis out of range is an error.
template <int Axis, tensor X> constexpr Attributes along(const X &x, const char *rule) {
  if (!axis_within(Axis, X::rank))
    x.tracer->fail(rule, Text().put("axis ").put(Axis).put(" of ").put(typed(x).data()).data());
  Attributes attributes;
  attributes.axis = normal_axis(Axis, X::rank);
  return attributes;
}

/// Whether a constant of the type can represent the number. Floating-point types round it.
constexpr bool holds(ElementType element, double value) {
  if (floating(element))
    return true;
  const ElementInfo &type = info(element);
  if (!(value >= static_cast<double>(type.least()) && value <= static_cast<double>(type.most())))
    return false;
  return value == static_cast<double>(static_cast<std::int64_t>(value));
}

template <ElementType E> constexpr Tensor<E> number(Tracer *tracer, double value) {
  if (!holds(E, value))
    tracer->fail(rules::constant_c2, value, E);
  Attributes attributes;
  attributes.values.push_back(value);
  return emit<Tensor<E>>(tracer, Op::constant, {}, std::move(attributes));
}

/// Returns both operands as tensors: a number takes the other operand's element type.
template <tensor A, tensor B> constexpr auto as_tensors(const A &a, const B &b) { return std::pair{a, b}; }
template <tensor A, scalar B> constexpr auto as_tensors(const A &a, B b) {
  return std::pair{a, number<A::element>(a.tracer, static_cast<double>(b))};
}
template <scalar A, tensor B> constexpr auto as_tensors(A a, const B &b) {
  return std::pair{number<B::element>(b.tracer, static_cast<double>(a)), b};
}

template <class A, class B> constexpr Tracer *traced_by(const A &a, const B &b) {
  if constexpr (tensor<A>)
    return a.tracer;
  else
    return b.tracer;
}

template <tensor A, tensor B> constexpr void check_broadcast(const A &a, const B &b) {
  if constexpr (!broadcasts(A::shape, B::shape))
    a.tracer->fail(rules::broadcast_c1, typed(a, b).data());
  if constexpr (A::element != B::element)
    a.tracer->fail(rules::broadcast_c2, typed(a, b).data());
}

/// The operation's family determines the valid operand types and the result type.
template <Op O, class Left, class Right> constexpr auto elementwise(const Left &left, const Right &right, Site site) {
  traced_by(left, right)->at(site);
  auto [a, b] = as_tensors(left, right);
  using A = decltype(a);
  using B = decltype(b);
  check_broadcast(a, b);
  constexpr bool is_logic = family_of(O) == Family::logic;
  if constexpr ((A::element == boolean) != is_logic)
    a.tracer->fail(is_logic ? rules::logic_c1 : rules::broadcast_c3, typed(a, b).data());
  constexpr ElementType element = is_logic || family_of(O) == Family::comparison ? boolean : A::element;
  return emit<TensorOf<element, broadcast(A::shape, B::shape)>>(a.tracer, O, {a.node, b.node});
}

template <Op O, tensor X> constexpr auto unary(const X &x, Site site, Attributes attributes = {}) {
  x.tracer->at(site);
  if constexpr (!floating(X::element))
    x.tracer->fail(rules::unary_c1, typed(x).data());
  return emit<TensorOf<X::element, X::shape>>(x.tracer, O, {x.node}, std::move(attributes));
}

} // namespace detail

/// Two tensors, or a tensor and a number.
template <class A, class B>
concept operands = (tensor<A> && (tensor<B> || scalar<B>)) || (scalar<A> && tensor<B>);

// NumPy's broadcasting; a number becomes a constant of rank 0.
#define KILN_BINARY(name)                                                                                              \
  template <class A, class B>                                                                                          \
    requires operands<A, B>                                                                                            \
  constexpr auto name(const A &a, const B &b, Site site = Site::here()) {                                              \
    return detail::elementwise<Op::name>(a, b, site);                                                                  \
  }
#define KILN_COMPARISON(name) KILN_BINARY(name)
#define KILN_LOGIC(name) KILN_BINARY(name)
#define KILN_UNARY(name)                                                                                               \
  constexpr auto name(const tensor auto &x, Site site = Site::here()) { return detail::unary<Op::name>(x, site); }
#include "kiln/ops.def"

/// Converts the elements to type E: a boolean becomes 0 or 1; conversion to i32 and i8 truncates, and saturates at the
/// nearest value within the range that f32 can represent.
template <ElementType E, tensor X> constexpr auto cast(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  if constexpr (!floating(E) && E != i32 && E != i8)
    x.tracer->fail(rules::cast_c1, E);
  if constexpr (E == X::element)
    return x;
  else
    return detail::emit<TensorOf<E, X::shape>>(x.tracer, Op::cast, {x.node});
}
/// a where the boolean condition holds, b elsewhere.
template <tensor C, class A, class B>
  requires operands<A, B>
constexpr auto where(const C &condition, const A &left, const B &right, Site site = Site::here()) {
  condition.tracer->at(site);
  auto [a, b] = detail::as_tensors(left, right);
  constexpr auto both = detail::broadcast(decltype(a)::shape, decltype(b)::shape);
  detail::check_broadcast(a, b);
  if constexpr (C::element != boolean)
    condition.tracer->fail(rules::where_c1, detail::typed(condition).data());
  if constexpr (!detail::broadcasts(C::shape, both))
    condition.tracer->fail(rules::broadcast_c1, detail::typed(condition, a, b).data());
  using Result = TensorOf<decltype(a)::element, detail::broadcast(C::shape, both)>;
  return detail::emit<Result>(condition.tracer, Op::where, {condition.node, a.node, b.node});
}
/// A `where` of two numbers is an error, since nothing determines the type.
template <tensor C, scalar A, scalar B> constexpr auto where(const C &condition, A, B, Site site = Site::here()) {
  condition.tracer->at(site);
  condition.tracer->fail(rules::where_c2, "numbers");
  return cast<f32>(condition, site);
}
template <class A, class B>
  requires operands<A, B>
constexpr auto operator==(const A &a, const B &b) { // not a friend: it would be ambiguous with its own reversed form
  return equal(a, b, Site());
}

/// The identity, except in training entries: there each element is 0 with probability p, and otherwise x / (1 - p)
/// (Srivastava et al. 2014, section 10).
constexpr auto dropout(const tensor auto &x, double probability, Site site = Site::here()) {
  x.tracer->at(site);
  if (!(probability >= 0 && probability < 1))
    x.tracer->fail(rules::dropout_c1, probability);
  Attributes attributes;
  attributes.probability = probability;
  return detail::unary<Op::dropout>(x, site, std::move(attributes));
}

/// The identity; its gradient is zero.
constexpr auto stop_gradient(const tensor auto &x, Site site = Site::here()) {
  return detail::unary<Op::stop_gradient>(x, site);
}

/// The parameter `kept`; in training and gradient entries, `value`. A training step adds rate (target - kept) to the
/// parameter; a gradient entry returns kept - target as its gradient. If the parameter is frozen, the result is the
/// parameter in every entry.
template <tensor Kept, tensor Value, tensor Target>
constexpr auto running_average(const Kept &kept, const Value &value, const Target &target, double rate,
                               Site site = Site::here()) {
  kept.tracer->at(site);
  if (const Op op = kept.tracer->node(kept.node).op; op != Op::parameter)
    kept.tracer->fail(rules::running_average_c1, name_of(op));
  if constexpr (Value::element != Kept::element || !detail::same_shape(Value::shape, Kept::shape) ||
                Target::element != Kept::element || !detail::same_shape(Target::shape, Kept::shape))
    kept.tracer->fail(rules::running_average_c2, detail::typed(value, target).data(), detail::typed(kept).data());
  if (!(rate > 0 && rate <= 1))
    kept.tracer->fail(rules::running_average_c3, rate);
  Attributes attributes;
  attributes.rate = rate;
  return detail::emit<TensorOf<Kept::element, Kept::shape>>(
      kept.tracer, Op::running_average, {kept.node, value.node, target.node}, std::move(attributes));
}

} // namespace kiln
