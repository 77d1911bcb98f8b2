// SPDX-License-Identifier: Apache-2.0
//
// Recurrent layers with PyTorch's parameter names: "rnn.weight_ih_l0", "rnn.bias_hh_l1_reverse". The input projections
// of all steps are computed at once, those of the state step by step.
#pragma once

#include <array>

#include "kiln/blocks.h"

namespace kiln {

// A cell has `gates`, the rows of weights per unit; `states`, the number of state tensors, of which the first is the
// output; and `next`, which computes the next states from the projected input and the projected previous output, [...,
// gates * Hidden] each.

/// h' = A(W_ih x + b_ih + W_hh h + b_hh) (Elman 1990).
template <Activation A = Activation::tanh> struct ElmanCell {
  static constexpr int gates = 1, states = 1;
  template <std::int64_t Hidden>
  static constexpr auto next(const tensor auto &x, const tensor auto &h, const auto &, Site site) {
    return std::tuple{activate<A>(x + h, site)};
  }
};

/// i, f, g, o = the four parts of W_ih x + b_ih + W_hh h + b_hh; c' = sigmoid(f) c + sigmoid(i) tanh(g);
/// h' = sigmoid(o) tanh(c') (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000).
struct LstmCell {
  static constexpr int gates = 4, states = 2;
  template <std::int64_t Hidden>
  static constexpr auto next(const tensor auto &x, const tensor auto &h, const auto &state, Site) {
    auto sum = x + h;
    auto i = sigmoid(slice<-1, 0, Hidden>(sum)), f = sigmoid(slice<-1, Hidden, Hidden>(sum));
    auto g = tanh(slice<-1, 2 * Hidden, Hidden>(sum)), o = sigmoid(slice<-1, 3 * Hidden, Hidden>(sum));
    auto c = f * std::get<1>(state) + i * g;
    return std::tuple{o * tanh(c), c};
  }
};

/// r, z, n = the three parts of W_ih x + b_ih and of W_hh h + b_hh; r = sigmoid(r_x + r_h), z = sigmoid(z_x + z_h), n =
/// tanh(n_x + r n_h); h' = (1 - z) n + z h (Cho et al. 2014, with the reset gate after the projection).
struct GruCell {
  static constexpr int gates = 3, states = 1;
  template <std::int64_t Hidden>
  static constexpr auto next(const tensor auto &x, const tensor auto &h, const auto &state, Site) {
    auto r = sigmoid(slice<-1, 0, Hidden>(x) + slice<-1, 0, Hidden>(h));
    auto z = sigmoid(slice<-1, Hidden, Hidden>(x) + slice<-1, Hidden, Hidden>(h));
    auto n = tanh(slice<-1, 2 * Hidden, Hidden>(x) + r * slice<-1, 2 * Hidden, Hidden>(h));
    return std::tuple{(1 - z) * n + z * std::get<0>(state)};
  }
};

struct RecurrentOptions {
  int layers = 1;
  bool bidirectional = false; // adds a pass from the last step to the first; the outputs are concatenated
  bool bias = true;
  WeightType weight = f32; // type of all parameters and of the sequence; storage format of the matrices
};

/// The result of a recurrent layer: `auto [outputs, last] = lstm(x);`.
template <class Outputs, class State> struct Recurrence {
  Outputs outputs; // outputs of the last layer, [steps, ..., directions * Hidden]
  State last; // last state of each layer and direction, [layers * directions, ..., Hidden]; a tuple (h, c) for an LSTM
};

template <class Outputs, class State> Recurrence(Outputs, State) -> Recurrence<Outputs, State>;

namespace detail {

/// "weight_ih_l0", "weight_ih_l0_reverse".
template <int Layer, bool Reverse> struct RecurrentNames {
  static constexpr auto make(const char *base) {
    Text text;
    text.put(base).put("_l").put(Layer).put(Reverse ? "_reverse" : "");
    std::array<char, 32> name{};
    for (std::size_t i = 0; i < text.size(); ++i)
      name[i] = text.data()[i];
    return name;
  }
  static constexpr auto weight_ih = make("weight_ih"), weight_hh = make("weight_hh");
  static constexpr auto bias_ih = make("bias_ih"), bias_hh = make("bias_hh");
};

/// A tuple of `Count` elements of type X.
template <class X, std::size_t Count> using Repeated = decltype(std::tuple_cat(std::declval<std::array<X, Count>>()));

/// Selects the next state where the sequence continues, and the previous state elsewhere.
template <class State, std::size_t... I>
constexpr auto kept(const tensor auto &on, const State &next, const State &state, std::index_sequence<I...>) {
  return std::tuple{where(on, std::get<I>(next), std::get<I>(state))...};
}

} // namespace detail

/// Stacked layers of a cell over x [steps, ..., In]; the default initial state is zero. `initial` is a state of the
/// form of Recurrence::last. `lengths`, i32 [...], ends each sequence: outputs past its end are 0, the last state is
/// that of its end, and the reverse pass starts there.
template <class Cell, std::int64_t In, std::int64_t Hidden, RecurrentOptions Options = RecurrentOptions{}>
class Recurrent : public Named {
public:
  using Named::Named;

  template <tensor X, class Initial = None, class Lengths = None>
  constexpr auto operator()(const X &x, const Initial &initial = {}, const Lengths &lengths = {},
                            Site site = Site::here()) const {
    Tracer &tracer = *x.tracer;
    tracer.at(site);
    ScopeGuard guard(tracer, scope_in(tracer));
    if constexpr (X::rank < 2)
      tracer.fail(rules::recurrent_c1, detail::typed(x).data());
    if constexpr (X::element != Options.weight.element) { // traced as if it were, so that the types below match
      tracer.fail(rules::recurrent_c7, detail::typed(x).data());
      return (*this)(TensorOf<Options.weight.element, X::shape>(x.tracer, x.node), initial, lengths, site);
    } else {
      auto [outputs, states] = layers<0>(x, start(x, initial), goes_on(x, lengths, site), site);
      auto last = stacked(states, std::make_index_sequence<Cell::states>());
      if constexpr (Cell::states == 1)
        return Recurrence{outputs, std::get<0>(last)};
      else
        return Recurrence{outputs, last};
    }
  }
  template <class... Given> constexpr auto operator()(const Given &...given) const {
    return detail::refuse_call(given...);
  }

private:
  static constexpr int directions = Options.bidirectional ? 2 : 1;
  static constexpr std::int64_t passes = std::int64_t{Options.layers} * directions;
  static_assert(Options.layers >= 1, "kiln: recurrent layer: no layers; expected at least one [recurrent_c4]");
  static constexpr int most_layers = 64; // each is a separate loop, traced inside the template of the previous one
  static_assert(Options.layers <= most_layers,
                "kiln: recurrent layer: too many layers; expected at most 64 [recurrent_c6]");

  /// The shape of the state of one pass.
  template <tensor X> static constexpr auto shape = detail::with_last(detail::without_axis(X::shape, 0), Hidden);
  template <tensor X> using State = TensorOf<Options.weight.element, shape<X>>;
  template <tensor X> using States = TensorOf<Options.weight.element, detail::prepended(passes, shape<X>)>;

  /// Returns the initial states of all passes, a tuple of `Cell::states`; None for zeros.
  template <tensor X, class Initial> static constexpr auto start(const X &x, const Initial &initial) {
    if constexpr (std::is_same_v<Initial, None>) {
      return None();
    } else {
      auto states = detail::as_tuple(initial);
      if constexpr (std::is_same_v<decltype(states), detail::Repeated<States<X>, Cell::states>>) {
        return states;
      } else {
        x.tracer->fail(rules::recurrent_c2, detail::typed(states).data());
        return None();
      }
    }
  }

  /// Returns boolean [steps, ..., 1]: whether a sequence has that step; None without lengths. The lengths index a table
  /// of 0 .. steps, so that a call with lengths out of range fails the index check.
  template <tensor X, class Lengths> static constexpr auto goes_on(const X &x, const Lengths &lengths, Site site) {
    if constexpr (std::is_same_v<Lengths, None>) {
      return lengths;
    } else {
      constexpr auto batch = detail::leading<1>(detail::without_axis(X::shape, 0));
      if constexpr (Lengths::element != i32 || !detail::same_shape(Lengths::shape, batch))
        x.tracer->fail(rules::recurrent_c3, detail::typed(lengths).data(), batch);
      constexpr auto ones = [] {
        auto result = detail::with_last(X::shape, 1);
        for (std::size_t i = 1; i < result.size(); ++i)
          result[i] = 1;
        return result;
      }();
      using Steps = TensorOf<i32, ones>;
      using Ends = TensorOf<i32, detail::appended(batch, 1)>;
      if constexpr (Lengths::element != i32 || !detail::same_shape(Lengths::shape, batch)) {
        return None();
      } else {
        auto within = gather<0>(arange<X::shape[0] + 1>(x, site), lengths, site);
        return less(detail::emit<Steps>(x.tracer, Op::reshape, {positions<0>(x, site).node}),
                    detail::emit<Ends>(x.tracer, Op::reshape, {within.node}), site);
      }
    }
  }

  /// Computes x W^T + b with parameters of this layer.
  template <std::int64_t Width>
  constexpr auto project(const tensor auto &x, const char *weight, const char *bias, Site site) const {
    constexpr std::int64_t rows = Cell::gates * Hidden;
    constexpr Initial initial = Initial::fan_in(Hidden); // for both weights and both biases
    auto w = detail::weight<Options.weight, rows, Width>(x, weight, initial, site);
    if constexpr (Options.bias)
      return linear(x, w, detail::weight<Options.weight.element, rows>(x, bias, initial, site), site);
    else
      return linear(x, w, site);
  }

  template <int Pass, std::size_t... I, tensor X, class Initial>
  static constexpr auto start_of(const X &x, const Initial &initial, std::index_sequence<I...>) {
    auto one = [&](const auto &states) {
      using Slice = TensorOf<Options.weight.element, detail::prepended(1, shape<X>)>;
      Attributes attributes;
      attributes.axis = 0;
      attributes.start = Pass;
      auto part = detail::emit<Slice>(x.tracer, Op::slice, {states.node}, std::move(attributes));
      return detail::emit<State<X>>(x.tracer, Op::reshape, {part.node});
    };
    if constexpr (std::is_same_v<Initial, None>)
      return std::tuple{
          ((void)I, detail::emit<State<X>>(x.tracer, Op::expand,
                                           {detail::number<Options.weight.element>(x.tracer, 0).node}))...};
    else
      return std::tuple{one(std::get<I>(initial))...};
  }

  /// Runs one layer in one direction; returns the scan's last states and outputs.
  template <int Layer, bool Reverse, tensor X>
  constexpr auto pass(const X &x, const auto &initial, const auto &on, Site site) const {
    using Name = detail::RecurrentNames<Layer, Reverse>;
    constexpr Direction direction = Reverse ? Direction::reverse : Direction::forward;
    constexpr auto all = std::make_index_sequence<Cell::states>();
    constexpr std::int64_t width = Layer == 0 ? In : directions * Hidden;
    auto projected = project<width>(x, Name::weight_ih.data(), Name::bias_ih.data(), site);
    auto begin = start_of<Layer * directions + Reverse>(x, initial, all);
    auto next = [&](const auto &state, const auto &p) {
      auto h = project<Hidden>(std::get<0>(state), Name::weight_hh.data(), Name::bias_hh.data(), site);
      return Cell::template next<Hidden>(p, h, state, site);
    };
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(on)>, None>) {
      auto step = [&](const auto &state, const auto &p) {
        auto after = next(state, p);
        return std::pair{after, std::get<0>(after)};
      };
      return scan<direction>(begin, projected, step, site);
    } else {
      auto step = [&](const auto &state, const auto &here) {
        auto after = next(state, std::get<0>(here));
        auto goes_on = std::get<1>(here);
        return std::pair{detail::kept(goes_on, after, state, all), where(goes_on, std::get<0>(after), 0)};
      };
      return scan<direction>(begin, std::tuple{projected, on}, step, site);
    }
  }

  /// Runs the layers from this one on; returns the outputs, and the last states of all passes in order.
  template <int Layer>
  constexpr auto layers(const tensor auto &x, const auto &initial, const auto &on, Site site) const {
    auto [last, outputs] = pass<Layer, false>(x, initial, on, site);
    if constexpr (Options.bidirectional) {
      auto [back_last, back] = pass<Layer, true>(x, initial, on, site);
      return above<Layer>(concat<-1>(outputs, back), std::make_tuple(last, back_last), initial, on, site);
    } else {
      return above<Layer>(outputs, std::make_tuple(last), initial, on, site);
    }
  }
  template <int Layer>
  constexpr auto above(const tensor auto &outputs, const auto &states, const auto &initial, const auto &on,
                       Site site) const {
    if constexpr (Layer + 1 >= Options.layers || Layer + 1 >= most_layers) {
      return std::pair{outputs, states};
    } else {
      auto [last, rest] = layers<Layer + 1>(outputs, initial, on, site);
      return std::pair{last, std::tuple_cat(states, rest)};
    }
  }

  /// Converts states per pass to states stacked over the passes.
  template <std::size_t... I> static constexpr auto stacked(const auto &states, std::index_sequence<I...>) {
    auto one = [&](auto number) {
      auto raise = []<tensor S>(const S &state) {
        return detail::emit<TensorOf<Options.weight.element, detail::prepended(1, S::shape)>>(state.tracer, Op::reshape,
                                                                                              {state.node});
      };
      return std::apply([&](const auto &...pass) { return concat<0>(raise(std::get<number()>(pass))...); }, states);
    };
    return std::tuple{one(std::integral_constant<std::size_t, I>())...};
  }
};

/// One step of a cell, for a user-written loop: x [..., In] and the state, [..., Hidden] or a tuple of them, yield the
/// next state. Parameters weight_ih, weight_hh, bias_ih, bias_hh.
template <class Cell, std::int64_t In, std::int64_t Hidden, WeightType Weight = f32>
class RecurrentStep : public Named {
public:
  using Named::Named;

  template <tensor X, class State>
  constexpr auto operator()(const X &x, const State &state, Site site = Site::here()) const {
    ScopeGuard guard(*x.tracer, scope_in(x.tracer->at(site)));
    x.tracer->at(site);
    auto before = detail::as_tuple(state);
    using One = TensorOf<Weight.element, detail::with_last(X::shape, Hidden)>;
    if constexpr (!std::is_same_v<decltype(before), detail::Repeated<One, Cell::states>>) {
      x.tracer->fail(rules::recurrent_c5, detail::typed(before).data());
      return state;
    } else {
      auto next =
          Cell::template next<Hidden>(project<In>(x, "weight_ih", "bias_ih", site),
                                      project<Hidden>(std::get<0>(before), "weight_hh", "bias_hh", site), before, site);
      return detail::as_given<State>(next);
    }
  }
  template <class... Given> constexpr auto operator()(const Given &...given) const {
    return detail::refuse_call(given...);
  }

private:
  template <std::int64_t Width>
  static constexpr auto project(const tensor auto &x, const char *weight, const char *bias, Site site) {
    constexpr std::int64_t rows = Cell::gates * Hidden;
    constexpr Initial initial = Initial::fan_in(Hidden);
    return linear(x, detail::weight<Weight, rows, Width>(x, weight, initial, site),
                  detail::weight<Weight.element, rows>(x, bias, initial, site), site);
  }
};

/// torch.nn.RNNCell, LSTMCell and GRUCell.
template <std::int64_t In, std::int64_t Hidden, WeightType Weight = f32>
using RnnStep = RecurrentStep<ElmanCell<>, In, Hidden, Weight>;
template <std::int64_t In, std::int64_t Hidden, WeightType Weight = f32>
using LstmStep = RecurrentStep<LstmCell, In, Hidden, Weight>;
template <std::int64_t In, std::int64_t Hidden, WeightType Weight = f32>
using GruStep = RecurrentStep<GruCell, In, Hidden, Weight>;

/// torch.nn.RNN, LSTM and GRU, x [steps, batch, In] or [steps, In].
template <std::int64_t In, std::int64_t Hidden, RecurrentOptions Options = RecurrentOptions{}>
using Rnn = Recurrent<ElmanCell<>, In, Hidden, Options>;
template <std::int64_t In, std::int64_t Hidden, RecurrentOptions Options = RecurrentOptions{}>
using Lstm = Recurrent<LstmCell, In, Hidden, Options>;
template <std::int64_t In, std::int64_t Hidden, RecurrentOptions Options = RecurrentOptions{}>
using Gru = Recurrent<GruCell, In, Hidden, Options>;

} // namespace kiln
