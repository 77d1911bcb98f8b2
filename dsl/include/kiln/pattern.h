// SPDX-License-Identifier: Apache-2.0
//
// Stacks of layers of several types that follow each other periodically, such as five with a window and one without.
// The trace has a loop over the periods, in whose body each type has a loop over its layers, and after it the layers of
// an incomplete period: the body of each type is traced at most twice, however many layers there are. Names number the
// layers through all types, as in a list of modules (numbered.h).
#pragma once

#include "kiln/stack.h"

namespace kiln {

namespace detail {
struct NoLayer {};
} // namespace detail

/// The period of a stack: a number of layers of the first type, then of the second, and so on, up to four types.
/// `Stack<26, Pattern<5, Local, 1, Global>>` has the layers 0 to 4 of type Local, layer 5 of type Global, and so on.
template <std::int64_t FirstCount, class First, std::int64_t SecondCount = 0, class Second = detail::NoLayer,
          std::int64_t ThirdCount = 0, class Third = detail::NoLayer, std::int64_t FourthCount = 0,
          class Fourth = detail::NoLayer>
struct Pattern {
  static constexpr std::int64_t period = FirstCount + SecondCount + ThirdCount + FourthCount;
};

namespace detail {

template <class Block> inline constexpr bool is_pattern = false;
template <std::int64_t A, class First, std::int64_t B, class Second, std::int64_t C, class Third, std::int64_t D,
          class Fourth>
inline constexpr bool is_pattern<Pattern<A, First, B, Second, C, Third, D, Fourth>> = true;

/// Slices of an argument for the layers [Begin, Begin + Count) of a stack or of a period.
template <std::int64_t, std::int64_t, class X> constexpr const X &part_argument(const X &x) { return x; }
template <std::int64_t Begin, std::int64_t Count, tensor X> constexpr auto part_argument(const PerLayer<X, 1> &x) {
  using Part = TensorOf<X::element, with_axis_extent(X::shape, 0, Count)>;
  Attributes attributes;
  attributes.axis = 0;
  attributes.start = Begin;
  return PerLayer<Part>{emit<Part>(x.values.tracer, Op::slice, {x.values.node}, std::move(attributes))};
}

/// An argument for the complete periods: an element of the first axis has the slices of a period.
template <std::int64_t, std::int64_t, class X> constexpr const X &period_argument(const X &x) { return x; }
template <std::int64_t Periods, std::int64_t Period, tensor X> constexpr auto period_argument(const PerLayer<X, 1> &x) {
  const auto layers = part_argument<0, Periods * Period>(x).values;
  using Layers = std::remove_const_t<decltype(layers)>;
  using Folded = TensorOf<X::element, prepended(Periods, with_axis_extent(Layers::shape, 0, Period))>;
  return PerLayer<Folded, 2>{emit<Folded>(layers.tracer, Op::reshape, {layers.node})};
}
/// [periods, layers of a period, ...] -> [layers, ...].
template <tensor X> constexpr auto unfolded_periods(const X &x) {
  constexpr auto rest = without_axis(X::shape, 0);
  using Layers = TensorOf<X::element, with_axis_extent(rest, 0, X::shape[0].offset * rest[0].offset)>;
  return emit<Layers>(x.tracer, Op::reshape, {x.node});
}
template <class Tuple> constexpr auto unfolded_periods(const Tuple &stacked) {
  return transformed([](const auto &each) { return unfolded_periods(each); }, stacked);
}

/// Joins the stacked outputs of layers and of those that follow them. NoLayer: there are none before.
template <class Next> constexpr const Next &with_following(const NoLayer &, const Next &next) { return next; }
template <tensor Former, tensor Next> constexpr auto with_following(const Former &former, const Next &next) {
  return concat<0>(former, next);
}
template <class... Former, class... Next>
constexpr auto with_following(const std::tuple<Former...> &former, const std::tuple<Next...> &next) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::tuple<decltype(concat<0>(std::get<I>(former), std::get<I>(next)))...>{
        concat<0>(std::get<I>(former), std::get<I>(next))...};
  }(std::index_sequence_for<Former...>());
}

/// A scope of a pattern, whose name stands for a part of the layers' numbers.
class NumberScope : public Named {
public:
  using Named::Named;
  constexpr int in(Tracer &tracer, std::int64_t copies) const { return scope_in(tracer, copies, true); }
};

/// The layers of one type, which are [Begin, Begin + Run) of each period.
template <std::int64_t Count, std::int64_t Period, std::int64_t Begin, std::int64_t Run, class Block>
class PatternPart {
  static_assert(Run >= 1, "kiln: stack: invalid pattern; expected at least one layer of each type [stack_c8]");
  static_assert(!is_pattern<Block>, "kiln: stack: a pattern in a pattern; expected types of layers [stack_c9]");
  static constexpr std::int64_t own = Run < 1 ? 1 : Run, last = Count / Period * Period + Begin;

public:
  /// How many layers the incomplete period has.
  static constexpr std::int64_t rest = last >= Count ? 0 : last + own <= Count ? own : Count - last;

  template <class... Options>
  constexpr explicit PatternPart(const Options &...options) : layers(options...), others(options...) {}

  /// Traces the layers of one period, or of the incomplete one.
  template <bool IsRest, LayerOutputs Outputs, class X, class... Others>
  constexpr auto trace(Tracer &tracer, const X &x, const Others &...given) const {
    constexpr std::int64_t count = IsRest ? rest : own, begin = IsRest ? last : Begin;
    const int scope = (IsRest ? after : inside).in(tracer, count);
    ScopeGuard guard(tracer, scope);
    auto body = [&](const auto &carried, const auto &...each) {
      return (IsRest ? others : layers)(scope, carried, each...);
    };
    const std::tuple<decltype(part_argument<begin, count>(given))...> own_part{part_argument<begin, count>(given)...};
    return std::apply([&](const auto &...each) { return trace_stack<count, Outputs>(tracer, scope, x, body, each...); },
                      own_part);
  }

private:
  NumberScope inside{layer_offset_name<Begin>.data()}, after{layer_offset_name<last>.data()};
  LayersOf<Block> layers, others;
};

/// The parts of a pattern, as PatternPart.
template <std::int64_t Count, std::int64_t Period, std::int64_t Begin, class... Runs> struct PatternParts {
  using type = std::tuple<>;
};
template <std::int64_t Run, class Block> struct PatternRun {};
template <std::int64_t Count, std::int64_t Period, std::int64_t Begin, std::int64_t Run, class Block, class... Runs>
struct PatternParts<Count, Period, Begin, PatternRun<Run, Block>, Runs...> {
  using type =
      decltype(std::tuple_cat(std::declval<std::tuple<PatternPart<Count, Period, Begin, Run, Block>>>(),
                              std::declval<typename PatternParts<Count, Period, Begin + Run, Runs...>::type>()));
};
template <std::int64_t Count, std::int64_t Period, std::int64_t Begin, class... Runs>
struct PatternParts<Count, Period, Begin, PatternRun<0, NoLayer>, Runs...> {
  using type = std::tuple<>;
};

} // namespace detail

/// `Count` layers of the types of a pattern, which each have their own weights: "layers.0", "layers.1", ... The last
/// period may be incomplete. Options of the constructor are those of all types.
template <std::int64_t Count, std::int64_t A, class First, std::int64_t B, class Second, std::int64_t C, class Third,
          std::int64_t D, class Fourth>
class Stack<Count, Pattern<A, First, B, Second, C, Third, D, Fourth>>
    : public detail::StackCalls<Stack<Count, Pattern<A, First, B, Second, C, Third, D, Fourth>>> {
  friend class detail::StackCalls<Stack>;
  static constexpr std::int64_t given = Pattern<A, First, B, Second, C, Third, D, Fourth>::period;
  static constexpr std::int64_t period = given < 1 ? 1 : given, periods = Count / period;
  using Parts =
      typename detail::PatternParts<Count, period, 0, detail::PatternRun<A, First>, detail::PatternRun<B, Second>,
                                    detail::PatternRun<C, Third>, detail::PatternRun<D, Fourth>>::type;

public:
  constexpr Stack() = default;
  template <class... Options>
  constexpr explicit Stack(const char *name, const Options &...options)
      : detail::StackCalls<Stack>(name), parts(parts_with(static_cast<Parts *>(nullptr), options...)) {}

private:
  template <class... Part, class... Options>
  static constexpr std::tuple<Part...> parts_with(std::tuple<Part...> *, const Options &...options) {
    return {Part(options...)...};
  }

  template <detail::LayerOutputs Outputs, class X, class... Others>
  constexpr auto trace_layers(Tracer &tracer, const X &x, const Others &...others) const {
    const int scope = this->scope_in(tracer);
    ScopeGuard guard(tracer, scope);
    detail::check_count(tracer, scope, Count);
    (detail::check_slices<Count>(others), ...);
    if constexpr (periods < 1) {
      return trace_parts<true, Outputs>(tracer, x, detail::NoLayer(), others...);
    } else if constexpr (Count % period == 0) {
      return trace_periods<Outputs>(tracer, x, others...);
    } else if constexpr (Outputs == detail::LayerOutputs::none) {
      return trace_parts<true, Outputs>(tracer, trace_periods<Outputs>(tracer, x, others...), detail::NoLayer(),
                                        others...);
    } else {
      const auto made = trace_periods<Outputs>(tracer, x, others...);
      return trace_parts<true, Outputs>(tracer, made.first, made.second, others...);
    }
  }

  /// Traces the complete periods.
  template <detail::LayerOutputs Outputs, class X, class... Others>
  constexpr auto trace_periods(Tracer &tracer, const X &x, const Others &...others) const {
    using detail::period_argument;
    constexpr bool has_outputs = Outputs != detail::LayerOutputs::none;
    const std::tuple<decltype(period_argument<periods, period>(others))...> own{
        period_argument<periods, period>(others)...};
    const int scope = each_period.in(tracer, detail::copies_of(periods));
    ScopeGuard guard(tracer, scope);
    detail::check_count(tracer, scope, periods);
    auto body = [&](const auto &carried, const auto &...each) {
      return trace_parts<false, Outputs>(tracer, carried, detail::NoLayer(), each...);
    };
    auto trace = [&](const auto &...each) {
      constexpr auto made = has_outputs ? detail::LayerOutputs::own : detail::LayerOutputs::none;
      return detail::trace_stack<periods, made>(tracer, scope, x, body, each...);
    };
    const auto made = std::apply(trace, own);
    if constexpr (has_outputs)
      return std::pair{made.first, detail::unfolded_periods(made.second)};
    else
      return made;
  }

  /// Traces the parts of a period from the given one on. `former`: the outputs of the layers before, if they have some.
  template <bool IsRest, detail::LayerOutputs Outputs, std::size_t I = 0, class X, class Former, class... Others>
  constexpr auto trace_parts(Tracer &tracer, const X &x, const Former &former, const Others &...others) const {
    constexpr bool has_outputs = Outputs != detail::LayerOutputs::none;
    if constexpr (I == std::tuple_size_v<Parts>) {
      if constexpr (has_outputs)
        return std::pair{x, former};
      else
        return x;
    } else if constexpr (IsRest && std::tuple_element_t<I, Parts>::rest == 0) {
      return trace_parts<IsRest, Outputs, I + 1>(tracer, x, former, others...);
    } else {
      const auto made = std::get<I>(parts).template trace<IsRest, Outputs>(tracer, x, others...);
      if constexpr (has_outputs)
        return trace_parts<IsRest, Outputs, I + 1>(tracer, made.first, detail::with_following(former, made.second),
                                                   others...);
      else
        return trace_parts<IsRest, Outputs, I + 1>(tracer, made, former, others...);
    }
  }

  detail::NumberScope each_period{detail::layer_stride_name<period>.data()};
  Parts parts;
};

} // namespace kiln
