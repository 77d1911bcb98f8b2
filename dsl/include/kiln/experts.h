// SPDX-License-Identifier: Apache-2.0
//
// A mixture of experts: a router chooses some of many gated perceptrons for each token. The pairs of a token and an
// expert are sorted by expert, so that grouped_linear reads the weights of an expert once for all of its tokens, and
// those of an expert without tokens not at all. There is no capacity: an expert takes as many tokens as choose it.
#pragma once

#include <array>

#include "kiln/blocks.h"

namespace kiln {

/// How a router turns a token's scores into gates: their softmax over all experts, or the sigmoid of each.
enum class RouterGate { softmax, sigmoid };

struct ExpertsOptions {
  RouterGate gate = RouterGate::softmax;
  bool normalize = true; // the gates of the chosen experts are divided by their sum
  Activation activation = Activation::silu;
  std::int64_t shared = 0;   // width of the shared expert, which every token has; 0: there is none
  bool gates_shared = false; // the shared expert has a gate, the sigmoid of a score
  WeightType weight = f32;   // not the last member, as in BlockOptions
  double scale = 1;          // of the gates
};

namespace detail {

/// The decimal digits of a number, for names.
template <int Number> struct Digits {
  static constexpr auto make() {
    std::array<char, 12> text{};
    int count = 1;
    for (int rest = Number / 10; rest > 0; rest /= 10)
      ++count;
    for (int rest = Number; count > 0; rest /= 10)
      text[static_cast<std::size_t>(--count)] = static_cast<char>('0' + rest % 10);
    return text;
  }
  static constexpr std::array<char, 12> text = make();
};

/// The weight of one linear without bias: parameter weight [Out, In].
template <std::int64_t In, std::int64_t Out, WeightType Weight> class ExpertLinear : public Named {
public:
  using Named::Named;
  constexpr int weight_node(const tensor auto &context, Site site) const {
    ScopeGuard guard(*context.tracer, scope_in(*context.tracer));
    return weight<Weight, Out, In>(context, "weight", Initial::fan_in(In), site).node;
  }
};

template <std::int64_t Width, std::int64_t Hidden, WeightType Weight> class Expert : public Named {
public:
  using Named::Named;
  template <class Use> constexpr auto in_scope(Tracer &tracer, Use &&use) const {
    ScopeGuard guard(tracer, scope_in(tracer));
    return use(*this);
  }

  ExpertLinear<Width, Hidden, Weight> gate_proj{"gate_proj"}, up_proj{"up_proj"};
  ExpertLinear<Hidden, Width, Weight> down_proj{"down_proj"};
};

/// `Count` experts "0", "1", ...
template <std::int64_t Width, std::int64_t Hidden, int Count, WeightType Weight> class ExpertList : public Named {
  using One = Expert<Width, Hidden, Weight>;

public:
  constexpr explicit ExpertList(const char *name)
      : Named(name), experts(numbered(std::make_integer_sequence<int, Count>())) {}

  /// grouped_linear with the weights of the projection of all experts, one after another.
  template <std::int64_t In, std::int64_t Out, tensor X, tensor Ends>
  constexpr auto project(const X &x, const Ends &ends, const ExpertLinear<In, Out, Weight> One::*projection,
                         Site site) const {
    Tracer &tracer = *x.tracer;
    std::vector<int> weights;
    {
      ScopeGuard guard(tracer, scope_in(tracer));
      for (const One &expert : experts)
        weights.push_back(
            expert.in_scope(tracer, [&](const One &each) { return (each.*projection).weight_node(x, site); }));
    }
    Attributes attributes;
    attributes.axis = 0;
    using All = Tensor<Weight.element, Dim(Count * Out), Dim(In)>;
    auto all = emit<All>(&tracer, Op::concat, std::move(weights), std::move(attributes));
    return grouped_linear(x, all, ends, site);
  }

private:
  template <int... Number> static constexpr std::array<One, Count> numbered(std::integer_sequence<int, Number...>) {
    return {One(Digits<Number>::text.data())...};
  }
  std::array<One, Count> experts;
};

/// down_proj(activation(gate_proj(x)) * up_proj(x)) without biases.
template <std::int64_t Width, std::int64_t Hidden, Activation A, WeightType Weight> class GatedMlp : public Named {
public:
  using Named::Named;
  constexpr auto operator()(const tensor auto &x, Site site) const {
    ScopeGuard guard(*x.tracer, scope_in(*x.tracer));
    return down_proj(mul(activate<A>(gate_proj(x, site), site), up_proj(x, site), site), site);
  }

private:
  Linear<Width, Hidden, false, WeightOrder::out_in, Weight> gate_proj{"gate_proj"}, up_proj{"up_proj"};
  Linear<Hidden, Width, false, WeightOrder::out_in, Weight> down_proj{"down_proj"};
};

/// The experts with the Top largest scores of each token, [tokens, experts]: i32 [tokens, Top], the largest first. The
/// place of an expert is the number of experts before it, which have a larger score, or the same and a smaller number.
/// An expert is not compared with itself, so that whether an inexact score equals itself does not matter.
template <int Top, tensor Scores> constexpr auto first_experts(const Scores &scores, Site site) {
  auto ordered = where(less_equal(scores, largest_f32, site), scores, largest_f32, site); // NaN is the largest
  auto own = unsqueezed<2>(ordered);
  auto other = unsqueezed<1>(ordered);
  auto number = arange<Scores::shape[1]>(scores, site);
  auto own_number = unsqueezed<1>(number);
  auto other_number = unsqueezed<0>(number);
  auto is_later = less(own_number, other_number, site);
  auto of_later = where(is_later, less(own, other, site), is_later, site);
  auto is_before = where(less(other_number, own_number, site), less_equal(own, other, site), of_later, site);
  auto place = sum<2>(cast<i32>(is_before, site), site);
  auto has_place = equal(unsqueezed<1>(place), unsqueezed<1>(arange<Dim(Top)>(scores, site)), site);
  return sum<2>(where(has_place, number, 0, site), site);
}

/// The pairs of a token and one of its experts, sorted by expert.
template <tensor Tokens, tensor Places, tensor Ends> struct SortedPairs {
  Tokens tokens; // i32 [pairs], the token of each pair in sorted order
  Places places; // i32 [pairs], where each pair is in sorted order
  Ends ends;     // i32 [experts], the end of each expert's pairs in sorted order
};

/// Sorts by counting, as argsort does. `chosen`: i32 [tokens, experts of each].
template <int Count, tensor Chosen> constexpr auto sorted_pairs(const Chosen &chosen, Site site) {
  constexpr Dim pairs = Chosen::shape[0] * Chosen::shape[1];
  auto expert = viewed<Shape<1>{{pairs}}>(chosen);
  auto number = positions<0>(expert, site);
  auto token = viewed<Shape<1>{{pairs}}>(
      expand<Chosen::shape[0], Chosen::shape[1]>(unsqueezed<1>(positions<0>(chosen, site)), site));
  auto own = unsqueezed<1>(expert), own_number = unsqueezed<1>(number);
  auto other = unsqueezed<0>(expert), other_number = unsqueezed<0>(number);
  auto is_earlier = logical_and(equal(other, own, site), less(other_number, own_number, site), site);
  auto place = sum<1>(cast<i32>(logical_or(less(other, own, site), is_earlier, site), site), site);
  auto has_place = equal(unsqueezed<0>(place), own_number, site);
  auto tokens = sum<1>(where(has_place, unsqueezed<0>(token), 0, site), site);
  auto is_before_end = less_equal(other, unsqueezed<1>(arange<Dim(Count)>(chosen, site)), site);
  auto ends = sum<1>(cast<i32>(is_before_end, site), site);
  return SortedPairs<decltype(tokens), decltype(place), decltype(ends)>{tokens, place, ends};
}

} // namespace detail

/// `Count` experts of the width `Hidden`, of which a router chooses `Top` for each token of x [..., Width]: the sum of
/// their results, each times its gate. Parameters gate.weight [Count, Width], experts.N.gate_proj, up_proj [Hidden,
/// Width] and down_proj [Width, Hidden], and those of shared_expert and shared_expert_gate, if there are any.
template <std::int64_t Width, std::int64_t Hidden, int Count, int Top, ExpertsOptions Options = ExpertsOptions{}>
class Experts : public Named {
  static_assert(Count >= 1 && Count <= 1024 && Top >= 1 && Top <= Count,
                "kiln: experts: wrong number of experts; expected at most 1024, and at least as many as each token has "
                "[experts_c1]");

public:
  using Named::Named;

  template <tensor X> constexpr auto operator()(const X &x, Site site = Site::here()) const {
    ScopeGuard guard(*x.tracer, scope_in(x.tracer->at(site)));
    if constexpr (X::rank < 1 || detail::last(X::shape) != Dim(Width)) {
      x.tracer->fail(rules::experts_c2, detail::last(X::shape), Dim(Width));
      return x;
    } else {
      constexpr Dim tokens = detail::extent_of_axes(X::shape, 0, X::rank - 1);
      auto rows = detail::viewed<Shape<2>{{tokens, Dim(Width)}}>(x);
      return detail::viewed<X::shape>(with_shared(rows, of_chosen(rows, site), site));
    }
  }
  template <class... Given> constexpr auto operator()(const Given &...given) const {
    return detail::refuse_call(given...);
  }

private:
  template <tensor X> constexpr auto of_chosen(const X &x, Site site) const {
    auto logits = cast<f32>(gate(x, site), site);
    auto scores = scores_of(logits, site);
    auto chosen = detail::first_experts<Top>(logits, site);
    auto gates = scaled(take_along_axis<1>(scores, chosen, site), site);
    auto pairs = detail::sorted_pairs<Count>(chosen, site);
    using One = detail::Expert<Width, Hidden, Options.weight>;
    auto sorted = embedding(pairs.tokens, x, site);
    auto gated = activate<Options.activation>(experts.project(sorted, pairs.ends, &One::gate_proj, site), site);
    auto hidden = mul(gated, experts.project(sorted, pairs.ends, &One::up_proj, site), site);
    auto results = experts.project(hidden, pairs.ends, &One::down_proj, site);
    auto of_tokens =
        detail::viewed<Shape<3>{{X::shape[0], Dim(Top), Dim(Width)}}>(embedding(pairs.places, results, site));
    return sum<1>(mul(of_tokens, cast<X::element>(detail::unsqueezed<2>(gates), site), site), site);
  }

  constexpr auto scores_of(const tensor auto &logits, Site site) const {
    if constexpr (Options.gate == RouterGate::softmax)
      return softmax<1>(logits, site);
    else
      return sigmoid(logits, site);
  }

  /// Divides the gates of each token by their sum, if that is an option, and multiplies them by the scale.
  constexpr auto scaled(const tensor auto &gates, Site site) const {
    auto weighted = [&] {
      if constexpr (Options.normalize)
        return div(gates, sum<1, keepdim>(gates, site), site);
      else
        return gates;
    }();
    if constexpr (Options.scale != 1)
      return mul(weighted, Options.scale, site);
    else
      return weighted;
  }

  template <tensor X> constexpr auto with_shared(const X &x, const X &y, Site site) const {
    if constexpr (Options.shared == 0)
      return y;
    else if constexpr (Options.gates_shared)
      return add(y, mul(shared_expert(x, site), sigmoid(shared_expert_gate(x, site), site), site), site);
    else
      return add(y, shared_expert(x, site), site);
  }

  // Routers are not quantised by the spec: a rounding may choose another expert.
  Linear<Width, Count, false, WeightOrder::out_in, Options.weight.element> gate{"gate"};
  detail::ExpertList<Width, Hidden, Count, Options.weight> experts{"experts"};
  detail::GatedMlp<Width, (Options.shared > 0 ? Options.shared : 1), Options.activation, Options.weight> shared_expert{
      "shared_expert"};
  Linear<Width, 1, false, WeightOrder::out_in, Options.weight.element> shared_expert_gate{"shared_expert_gate"};
};

} // namespace kiln
