// SPDX-License-Identifier: Apache-2.0
//
// Stacks: layers of one type, each with its own weights, whose body is traced once however many there are. The layers
// carry a tensor or several; further arguments are the same for every layer, or a slice for each. pattern.h has stacks
// whose layers are of several types.
#pragma once

#include "kiln/layers.h"
#include "kiln/scan.h"

namespace kiln {

/// An argument of a stack of which layer i gets element i of the first axis; per_layer makes it. With Levels > 1 that
/// element is an argument of an inner stack.
template <tensor X, int Levels = 1> struct PerLayer {
  X values;
};

/// Passes layer i of a stack the element i of the first axis: [layers, ...] -> [...].
template <tensor X> constexpr PerLayer<X> per_layer(const X &values) { return {values}; }

template <std::int64_t Count, class Block> class Stack;

namespace detail {

template <class Block> inline constexpr bool is_stack = false;
template <std::int64_t Count, class Block> inline constexpr bool is_stack<Stack<Count, Block>> = true;

/// What the layers of a stack can carry: a tensor or several.
template <class X>
concept carried = tensors<X> && !std::is_same_v<X, std::tuple<>>;

/// What a call of a stack returns in addition to the result of the last layer: nothing, the results of all layers, or
/// outputs that each layer returns after its result.
enum class LayerOutputs { none, results, own };

/// A layer without a name, which has these options after it.
template <class Block, class... Options> constexpr Block nameless(const Options &...options) {
  if constexpr (sizeof...(Options) == 0 && requires { Block{}; })
    return Block{};
  else if constexpr (requires { Block("", options...); })
    return Block("", options...);
  else
    static_assert(never<Block, Options...>,
                  "kiln: stack: its layer cannot be constructed; expected one that has a name, then the options that "
                  "follow the name of the stack, or `using Layer::Layer;` and none [stack_c4]");
}

/// Checks that an argument has a slice for each layer, if it has slices.
template <std::int64_t, class X> constexpr void check_slices(const X &) {}
template <std::int64_t Count, tensor X, int Levels> constexpr void check_slices(const PerLayer<X, Levels> &x) {
  if constexpr (X::rank == 0 || first(X::shape) != Dim(Count))
    x.values.tracer->fail(rules::stack_c6, typed(x.values).data(), Count);
}

/// Returns what a layer gets for an argument of its stack.
template <std::int64_t, class X> constexpr const X &layer_argument(const X &x) { return x; }
template <std::int64_t Count, tensor X, int Levels> constexpr auto layer_argument(const PerLayer<X, Levels> &x) {
  check_slices<Count>(x);
  const auto slice = slice_argument(x.values);
  if constexpr (Levels > 1)
    return PerLayer<std::remove_const_t<decltype(slice)>, Levels - 1>{slice};
  else
    return slice;
}
template <class X> constexpr void add_slices(std::vector<int> &, const X &) {}
template <tensor X, int Levels> constexpr void add_slices(std::vector<int> &operands, const PerLayer<X, Levels> &x) {
  operands.push_back(x.values.node);
}

/// Traces a stack in its scope, which is the current one. `body` gets what the layers carry, then the arguments; it
/// returns the next carried values, with `LayerOutputs::own` a pair of these and of outputs.
template <std::int64_t Count, LayerOutputs Outputs, carried X, class Body, class... Others>
constexpr auto trace_stack(Tracer &tracer, int scope, const X &x, const Body &body, const Others &...others) {
  std::vector<int> operands;
  transformed([&](const auto &each) { return operands.push_back(each.node), 0; }, as_tuple(x));
  (add_slices(operands, others), ...);
  Attributes attributes;
  attributes.index = tracer.open(scope, Count);
  attributes.states = std::tuple_size_v<decltype(as_tuple(x))>;
  auto argument = []<tensor V>(const V &value) {
    return state_argument(TensorOf<V::element, V::shape>(value.tracer, value.node));
  };
  const auto arguments = transformed(argument, as_tuple(x));
  const auto given = as_given<X>(arguments);
  const std::tuple<decltype(layer_argument<Count>(others))...> own{layer_argument<Count>(others)...};
  const auto made = std::apply([&](const auto &...each) { return body(given, each...); }, own);
  const auto next = [&] {
    if constexpr (Outputs != LayerOutputs::own) {
      return made;
    } else {
      static_assert(is_pair<std::remove_const_t<decltype(made)>>,
                    "kiln: stack: wrong result of a layer with outputs; expected a std::pair of what the layers carry "
                    "and of the outputs, tensors or tuples of them [stack_c7]");
      return made.first;
    }
  }();
  const auto fitting = [&] { // the next carried values, or the present ones after a mistake
    if constexpr (std::is_same_v<decltype(next), decltype(given)>)
      return next;
    else
      return given;
  }();
  if constexpr (!std::is_same_v<decltype(next), decltype(given)>)
    tracer.fail(rules::stack_c1, described<std::remove_const_t<decltype(next)>>().data(), typed(arguments).data());
  const auto outputs = [&] {
    if constexpr (Outputs == LayerOutputs::own)
      return made.second;
    else if constexpr (Outputs == LayerOutputs::results)
      return fitting;
    else
      return std::tuple<>();
  }();
  auto give = [&](const auto &each) { return tracer.result(each.node), 0; };
  transformed(give, as_tuple(fitting));
  transformed(give, as_tuple(outputs));
  tracer.close();

  using First = std::tuple_element_t<0, std::remove_const_t<decltype(arguments)>>;
  const First result = emit<First>(&tracer, Op::stack, std::move(operands), std::move(attributes));
  int number = 0;
  auto last = transformed(
      [&]<tensor V>(const V &) {
        if (number > 0)
          return result_of<V>(&tracer, result.node, number);
        ++number;
        return V(&tracer, result.node);
      },
      arguments);
  if constexpr (Outputs == LayerOutputs::none) {
    return as_given<X>(last);
  } else {
    auto stack = [&]<tensor V>(const V &) {
      return result_of<TensorOf<V::element, prepended(Count, V::shape)>>(&tracer, result.node, number);
    };
    return std::pair{as_given<X>(last),
                     as_given<std::remove_const_t<decltype(outputs)>>(transformed(stack, as_tuple(outputs)))};
  }
}

/// The layers of a stack, which have its name.
template <class Block> class LayersOf {
  static_assert(!is_stack<Block>, "kiln: stack: its layer is a stack, which needs a name in it; expected a layer that "
                                  "has the inner stack as a member [stack_c5]");

public:
  template <class... Options>
  constexpr explicit LayersOf(const Options &...options) : block(nameless<Block>(options...)) {}

  /// Calls the layer in the scope of its stack.
  template <class X, class... Others>
  constexpr auto operator()(int scope, const X &carried, const Others &...others) const {
    return std::apply([&](const auto &...x) { return call(scope, x..., others...); }, as_tuple(carried));
  }

private:
  template <tensor X, class... Others> constexpr auto call(int scope, const X &x, const Others &...others) const {
    if constexpr (requires { block.forward(x, others...); }) {
      return block.forward(x, others...);
    } else if constexpr (std::is_base_of_v<Named, Block>) {
      InScope inside(*x.tracer, block, scope);
      return block(x, others...);
    } else {
      refuse<rules::layer_c6, X, Others...>();
      return x;
    }
  }

  Block block;
};

/// The calls of a stack, which `Self` traces.
template <class Self> class StackCalls : public Named {
public:
  using Named::Named;

  // The line of the call is known for up to three further arguments.
  template <carried X> constexpr auto operator()(const X &x, Site site = Site::here()) const {
    return trace<LayerOutputs::none>(site, x);
  }
  template <carried X, class A> constexpr auto operator()(const X &x, const A &a, Site site = Site::here()) const {
    return trace<LayerOutputs::none>(site, x, a);
  }
  template <carried X, class A, class B>
  constexpr auto operator()(const X &x, const A &a, const B &b, Site site = Site::here()) const {
    return trace<LayerOutputs::none>(site, x, a, b);
  }
  template <carried X, class A, class B, class C>
  constexpr auto operator()(const X &x, const A &a, const B &b, const C &c, Site site = Site::here()) const {
    return trace<LayerOutputs::none>(site, x, a, b, c);
  }
  template <carried X, class A, class B, class C, class D, class... Others>
  constexpr auto operator()(const X &x, const A &a, const B &b, const C &c, const D &d, const Others &...others) const {
    return trace<LayerOutputs::none>(Site(), x, a, b, c, d, others...);
  }

  /// Returns a pair: the result of a call, and the stacked results of all layers, [Count, ...].
  template <carried X, class... Others> constexpr auto hidden_states(const X &x, const Others &...others) const {
    return trace<LayerOutputs::results>(Site(), x, others...);
  }
  /// Calls layers that return a pair, what they carry and outputs, tensors or tuples of them. Returns the pair of what
  /// the last layer carries and of the stacked outputs, [Count, ...].
  template <carried X, class... Others> constexpr auto with_outputs(const X &x, const Others &...others) const {
    return trace<LayerOutputs::own>(Site(), x, others...);
  }
  template <class... Given> constexpr auto operator()(const Given &...given) const { return refuse_call(given...); }

private:
  template <LayerOutputs Outputs, class X, class... Others>
  constexpr auto trace(Site site, const X &x, const Others &...others) const {
    Tracer &tracer = std::get<0>(as_tuple(x)).tracer->at(site);
    return static_cast<const Self *>(this)->template trace_layers<Outputs>(tracer, x, others...);
  }
};

/// The most layers of a stack, multiplied by those of the stacks around it.
inline constexpr std::int64_t most_layers = 1 << 20;

/// The number of a scope's copies for this number of layers; too large a number becomes one that check_count rejects.
constexpr std::int64_t copies_of(std::int64_t layers) { return layers < most_layers ? layers : most_layers + 1; }

constexpr void check_count(Tracer &tracer, int scope, std::int64_t layers) {
  if (layers < 1)
    tracer.fail(rules::stack_c2, layers);
  if (tracer.copies(scope) > most_layers)
    tracer.fail(rules::stack_c3, layers);
}

} // namespace detail

/// `Count` layers of the same type, each with its own weights: "h.0", "h.1", ... The body is traced once. `Block` is a
/// layer, or any type with a `forward`, which returns the type of its first argument. A stack that is called with a
/// std::tuple carries several tensors: they are the first arguments of `forward`, which returns such a tuple. Further
/// arguments are the same for every layer, but for those that `per_layer` makes. Options of the constructor follow the
/// name: `Stack<3, LayerNorm<8>> norms{"norms", 1e-6}`.
template <std::int64_t Count, class Block> class Stack : public detail::StackCalls<Stack<Count, Block>> {
  friend class detail::StackCalls<Stack>;

public:
  constexpr Stack() = default;
  template <class... Options>
  constexpr explicit Stack(const char *name, const Options &...options)
      : detail::StackCalls<Stack>(name), layers(options...) {}

private:
  template <detail::LayerOutputs Outputs, class X, class... Others>
  constexpr auto trace_layers(Tracer &tracer, const X &x, const Others &...others) const {
    const int scope = this->scope_in(tracer, detail::copies_of(Count));
    ScopeGuard guard(tracer, scope);
    detail::check_count(tracer, scope, Count);
    auto body = [&](const auto &carried, const auto &...own) { return layers(scope, carried, own...); };
    return detail::trace_stack<Count, Outputs>(tracer, scope, x, body, others...);
  }

  detail::LayersOf<Block> layers;
};

} // namespace kiln
