// SPDX-License-Identifier: Apache-2.0
//
// Traces a model's type to its Graph, and computes figures of the graph: parameters, bytes of weights, operations.
// Everything is constexpr; a model that breaks a rule does not compile, and the error names the layer, rule, dimensions
// and line.
#pragma once

#include <array>
#include <initializer_list>
#include <stdexcept>
#include <tuple>

#include "kiln/batch.h"
#include "kiln/blocks.h"
#include "kiln/names.h"
#include "kiln/order.h"
#include "kiln/pattern.h"
#include "kiln/training.h"

namespace kiln {

/// The base of a model: a struct of layers with a `forward`. A model may name its inputs and outputs: `static constexpr
/// kiln::Names inputs{"tokens"}, outputs{"logits"};`. Otherwise inputs are arg0, arg1, ... and outputs are output, or
/// output0, output1, ... `static constexpr kiln::Names variables{"head.*"};` names the weights that may be written
/// between calls.
///
/// A model with several entries has a `static constexpr auto entries()` in place of the names, after its functions:
/// `return std::tuple{kiln::entry("encode", &M::encode, {"source"}, {"memory"}), ...};`.
struct Model {
  static constexpr Names inputs{}, outputs{}, variables{};
};

template <class Function> struct EntryPoint {
  const char *name;
  Function function;
  Names inputs, outputs;
  int sequences = 0; // batched entry: the largest number of sequences
  Training training{};

  /// Returns the entry with a batched form, NAME_<entry>_batch, for up to `most` sequences per call, each with its own
  /// states and dimensions. The rows of the sequences are concatenated along the first axis of inputs and results.
  constexpr EntryPoint batched(int most) const {
    return {name, function, inputs, outputs, detail::or_least(most), training};
  }

  /// Clips gradients (training entries): scales them down if the norm of all gradients together exceeds `norm`.
  constexpr EntryPoint clipped(double norm) const {
    EntryPoint changed = *this;
    changed.training.clip = detail::or_least(norm);
    return changed;
  }
  /// Freezes the parameters that match one of the patterns; nothing is computed for them.
  constexpr EntryPoint frozen(Names patterns) const {
    EntryPoint changed = *this;
    changed.training.frozen = patterns;
    return changed;
  }
  /// Gradient checkpointing: only the values that pass between the layers of a stack are stored for the gradients; the
  /// values inside the layers are recomputed (Chen et al. 2016).
  constexpr EntryPoint checkpointed() const {
    EntryPoint changed = *this;
    changed.training.recomputes = true;
    return changed;
  }
  /// Rounds the values that layers of stacks and iterations of loops store for the gradients to the type, f32 or bf16.
  /// The values that pass from one layer or iteration to the next are not rounded.
  constexpr EntryPoint activations(ElementType type) const {
    EntryPoint changed = *this;
    changed.training.activations = type;
    return changed;
  }
  /// Gradient accumulation: a call takes the inputs of several micro-batches along a new first axis and computes one
  /// after another. The loss and the gradients are means over the micro-batches; other results are stacked.
  constexpr EntryPoint accumulated(int micro_batches) const {
    EntryPoint changed = *this;
    changed.training.micro_batches = detail::or_least(micro_batches);
    return changed;
  }
  /// Keeps an exponential moving average of the parameters: decay * average + (1 - decay) * parameter after each step.
  constexpr EntryPoint averaged(double decay) const {
    EntryPoint changed = *this;
    changed.training.average = detail::or_least(decay);
    return changed;
  }
  /// Disables weight decay for the parameters that match one of the patterns.
  constexpr EntryPoint without_decay(Names patterns) const {
    EntryPoint changed = *this;
    changed.training.undecayed = patterns;
    return changed;
  }
};

template <class Function>
constexpr EntryPoint<Function> entry(const char *name, Function function, Names inputs = {}, Names outputs = {}) {
  return {or_empty(name), function, inputs, outputs};
}

/// An entry whose first result is a loss, an f32 scalar, and that also returns the gradients of the loss with respect
/// to all parameters that it depends on. Each gradient is a result such as "grad_h_mlp_weight" for "h.{}.mlp.weight",
/// with the parameter's shape; the gradients of the layers of a stack are stacked along a new first axis.
template <class Function>
constexpr EntryPoint<Function> gradients(const char *name, Function function, Names inputs = {}, Names outputs = {}) {
  return {or_empty(name), function, inputs, outputs, 0, Training{Update::give}};
}

/// An entry that performs a training step: it computes the loss, its first result, and then updates the parameters that
/// the loss depends on. After the function's own inputs it has the inputs `learning_rate`, f32, and `step`, i32, 1 at
/// first; with clipping it returns the gradients' norm as `grad_norm`. If the loss or the norm is not finite, the call
/// returns an error status and changes nothing. The optimiser state is stored at the beginning of the arena.
template <class Function, class Optimizer>
constexpr EntryPoint<Function> train(const char *name, Function function, Names inputs, Names outputs,
                                     Optimizer optimizer) {
  return {or_empty(name), function, inputs, outputs, 0, optimizer.training()};
}

/// Groups several results of a forward function.
constexpr auto outputs(const tensor auto &...results) { return std::tuple{results...}; }

namespace detail {

inline constexpr const char *argument_names[] = {"arg0", "arg1", "arg2",  "arg3",  "arg4",  "arg5",  "arg6",  "arg7",
                                                 "arg8", "arg9", "arg10", "arg11", "arg12", "arg13", "arg14", "arg15"};
inline constexpr const char *output_names[] = {"output0",  "output1",  "output2",  "output3", "output4",  "output5",
                                               "output6",  "output7",  "output8",  "output9", "output10", "output11",
                                               "output12", "output13", "output14", "output15"};

constexpr std::vector<const char *> chosen_names(Tracer &tracer, const Names &names, int count,
                                                 const char *const *defaults, const char *rule) {
  std::vector<const char *> result;
  if (names.count != 0 && names.count != count)
    tracer.fail(rule, names.count, count);
  for (int i = 0; i < count; ++i)
    result.push_back(names.count == count ? names.items[i] : defaults[i]);
  return result;
}

constexpr void check_entry(Tracer &tracer, const Entry &entry) {
  for (const Entry &known : tracer.entries())
    if (same_text(known.name, entry.name))
      tracer.fail(rules::model_c5, entry.name);
  std::vector<const char *> names = entry.input_names;
  names.insert(names.end(), entry.output_names.begin(), entry.output_names.end());
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!is_identifier(names[i]))
      tracer.fail(rules::model_c3, names[i]);
    for (std::size_t j = 0; j < i; ++j)
      if (same_text(names[i], names[j]))
        tracer.fail(rules::model_c4, names[i]);
  }
  if (!is_identifier(entry.name))
    tracer.fail(rules::model_c3, entry.name);
}

template <class X> constexpr X input(Tracer &tracer) {
  tracer.at_none();
  tracer.declare(X::shape);
  return X(&tracer, tracer.argument(X::element, {X::shape.begin(), X::shape.end()}));
}

template <class Result> inline constexpr int result_count = 1;
template <class... Results> inline constexpr int result_count<std::tuple<Results...>> = sizeof...(Results);
template <class Result> inline constexpr bool is_result = tensor<Result>;
template <class... Results> inline constexpr bool is_result<std::tuple<Results...>> = (tensor<Results> && ...);

/// Checks that the first result of a gradient entry is a loss.
template <tensor Loss> constexpr void check_loss(Tracer &tracer, const Loss &loss) {
  if (Loss::rank != 0 || Loss::element != f32)
    tracer.fail(rules::gradients_c1, typed(loss).data());
}
template <tensor... Results> constexpr void check_loss(Tracer &tracer, const std::tuple<Results...> &results) {
  if constexpr (sizeof...(Results) > 0)
    check_loss(tracer, std::get<0>(results));
  else
    tracer.fail(rules::gradients_c1, "none");
}

template <class M, class Owner, class Result, class... Inputs>
constexpr void trace_entry(Tracer &tracer, const M &model,
                           const EntryPoint<Result (Owner::*)(Inputs...) const> &point) {
  constexpr bool tensors_in = (tensor<std::remove_cvref_t<Inputs>> && ...), tensors_out = is_result<Result>;
  static_assert(sizeof...(Inputs) > 0, "kiln: entry: no inputs; expected at least one [model_c7]");
  static_assert(tensors_in, "kiln: entry: parameter is no tensor; expected tensors [model_c6]");
  static_assert(tensors_out, "kiln: entry: result is no tensor; expected tensors [model_c8]");
  static_assert(sizeof...(Inputs) <= Names::capacity, "kiln: entry: too many inputs; expected at most 16 [model_c9]");
  static_assert(result_count<Result> <= Names::capacity,
                "kiln: entry: too many results; expected at most 16 [model_c13]");
  constexpr bool named = sizeof...(Inputs) <= Names::capacity && result_count<Result> <= Names::capacity;
  if constexpr (sizeof...(Inputs) > 0 && named && tensors_in && tensors_out) {
    Entry entry;
    entry.name = point.name;
    entry.region = tracer.open();
    std::tuple<std::remove_cvref_t<Inputs>...> arguments{input<std::remove_cvref_t<Inputs>>(tracer)...};
    auto result = std::apply([&](const auto &...values) { return (model.*point.function)(values...); }, arguments);
    int count = 0;
    auto give = [&](const auto &...results) {
      (tracer.result(results.node), ...);
      count = sizeof...(results);
    };
    if constexpr (tensor<Result>)
      give(result);
    else
      std::apply(give, result);
    if (point.training.update != Update::none)
      check_loss(tracer, result);
    tracer.close();

    constexpr const char *only = "output";
    entry.input_names = chosen_names(tracer, point.inputs, sizeof...(Inputs), argument_names, rules::model_c1);
    entry.output_names = chosen_names(tracer, point.outputs, count, count == 1 ? &only : output_names, rules::model_c2);
    entry.sequences = point.sequences;
    entry.training = point.training;
    check_entry(tracer, entry);
    tracer.entry(std::move(entry));
  }
}

template <class M, class Owner, class Result, class... Inputs>
constexpr void trace_entry(Tracer &tracer, const M &model,
                           const EntryPoint<Result (Owner::*)(Inputs...) const noexcept> &point) {
  using Function = Result (Owner::*)(Inputs...) const;
  trace_entry(
      tracer, model,
      EntryPoint<Function>{point.name, point.function, point.inputs, point.outputs, point.sequences, point.training});
}

template <class Function> inline constexpr bool is_entry = false;
template <class M, class Result, class... Inputs> inline constexpr bool is_entry<Result (M::*)(Inputs...) const> = true;
template <class M>
concept has_forward = requires { &M::forward; };

// Whether a model has members of these names, whatever they are: two bases with the same member make the name
// ambiguous. This distinguishes a model without `forward` from one whose function is private, a template, or
// ill-formed. If the model is ill-formed, nothing is reported, since the compiler has reported the error.
struct OtherNames {
  int forward, entries, of_no_model;
};
template <class M> struct WithOther : M, OtherNames {};
template <class M>
concept can_be_asked = !std::is_final_v<M> && requires { &WithOther<M>::of_no_model; };
template <class M>
concept names_forward = can_be_asked<M> && !requires { &WithOther<M>::forward; };
template <class M>
concept names_entries = can_be_asked<M> && !requires { &WithOther<M>::entries; };
template <class M>
concept lacks_forward = (can_be_asked<M> || std::is_final_v<M>) && !names_forward<M>;

/// A model as a constant, which a constant expression can copy unless it has a mutable member. The compilers do not
/// report such a member, since the trace owns its model.
template <class M> inline constexpr M untouched{};
template <class M> constexpr bool is_made() {
  M made{};
  return sizeof(made) > 0;
}
template <class M> constexpr bool is_copied(const M &from) {
  M copy(from);
  return sizeof(copy) > 0;
}
template <class M>
concept has_mutable_members = std::is_trivially_destructible_v<M> && std::is_copy_constructible_v<M> && requires {
  typename std::bool_constant<is_made<M>()>;
} && !requires { typename std::bool_constant<is_copied<M>(untouched<M>)>; };

/// Fallback for an entry that is not a const member function.
template <class M, class Function> constexpr void trace_entry(Tracer &, const M &, const EntryPoint<Function> &) {
  static_assert(is_entry<Function>,
                "kiln: entry: no const member function; expected one of the model that is no template [model_c10]");
}

template <class M> constexpr void trace_all(Tracer &tracer) {
  M model{}; // the layers remember their scopes, so every trace has its own
  if constexpr (requires { M::entries(); }) {
    auto each = [&](const auto &...entries) { (trace_entry(tracer, model, entries), ...); };
    std::apply(each, M::entries());
  } else if constexpr (names_entries<M>) {
    static_assert(never<M>, "kiln: model: its entries cannot be called; expected a public function `static constexpr "
                            "auto entries()` [model_c19]");
  } else {
    static_assert(std::is_base_of_v<Model, M>, "kiln: model: wrong base class; expected kiln::Model [model_c11]");
    static_assert(has_forward<M> || !lacks_forward<M>,
                  "kiln: model: neither forward nor entries; expected one of them [model_c12]");
    static_assert(has_forward<M> || !names_forward<M>, "kiln: model: its forward cannot be taken; expected one public "
                                                       "function that is no template, or entries [model_c18]");
    if constexpr (std::is_base_of_v<Model, M> && has_forward<M>)
      trace_entry(tracer, model, entry("forward", &M::forward, M::inputs, M::outputs));
  }
  tracer.finish();
  check_batches(tracer);
  tracer.make_trained_variables();
  if constexpr (requires { M::variables; })
    tracer.make_variables(M::variables);
}

template <class M> constexpr Text mistake() {
  if constexpr (has_mutable_members<M>) {
    return Text().put("forward: ").put(rules::model_c17);
  } else {
    Tracer tracer;
    trace_all<M>(tracer);
    return tracer.mistake();
  }
}

} // namespace detail

namespace error {

/// Instantiated for every model; its assertion stops the compilation of an invalid model.
template <class M> struct Check {
  static constexpr Text mistake = detail::mistake<M>();
  static constexpr bool passed = Refusal<detail::as_message<mistake.size()>(mistake)>::passed;
};

} // namespace error

/// The graph of a model, in a constant expression or at run time.
template <class M> constexpr Graph trace() {
  static_assert(error::Check<M>::passed);
  Tracer tracer;
  detail::trace_all<M>(tracer);
  return detail::in_order(tracer.take());
}

/// The number of parameters in a model's checkpoint; tied weights count once.
template <class M> constexpr std::int64_t parameters() {
  Graph graph = trace<M>();
  std::int64_t total = 0;
  for (const Parameter &parameter : graph.parameters)
    total += graph.copies(parameter.scope) * element_count(parameter);
  return total;
}

/// The number of bytes of these parameters.
template <class M> constexpr std::int64_t weight_bytes() {
  Graph graph = trace<M>();
  std::int64_t total = 0;
  for (const Parameter &parameter : graph.parameters)
    total += graph.copies(parameter.scope) * stored_bytes(parameter.element, element_count(parameter));
  return total;
}

/// The value of a symbolic dimension.
struct Extent {
  const char *name;
  std::int64_t value;
};

namespace error {
[[noreturn]] inline void flops_value_missing_or_out_of_bounds_flops_c1(const char *, std::int64_t) {
  throw std::invalid_argument(
      "flops: value missing or out of bounds; expected one within the bounds of each named dimension [flops_c1]");
}
} // namespace error

namespace detail {

class FlopCounter {
public:
  constexpr FlopCounter(const Graph &graph, std::initializer_list<Extent> extents) : graph(graph), extents(extents) {}

  constexpr std::int64_t region(int id) const {
    std::int64_t total = 0;
    for (int node : graph.regions[id].nodes)
      total += count(graph.nodes[node]);
    return total * graph.regions[id].count;
  }

private:
  constexpr std::int64_t count(const Node &node) const {
    switch (family_of(node.op)) {
    case Family::contraction:
      return 2 * elements(node.shape) * value(operand(node, 0).back());
    case Family::convolution: {
      const std::vector<Dim> &weight = operand(node, 1);
      return 2 * elements(node.shape) * elements({weight.begin() + 1, weight.end()});
    }
    case Family::attention:
      return attention(node);
    case Family::loop:
      return loop(node);
    case Family::source:
    case Family::lookup:
    case Family::unary:
    case Family::binary:
    case Family::comparison:
    case Family::logic:
    case Family::selection:
    case Family::conversion:
    case Family::norm:
    case Family::reduction:
    case Family::image:
    case Family::movement:
    case Family::state:
    case Family::custom:
      return 0;
    }
    return 0;
  }
  /// Scores: queries * keys * query width; the sum of values: queries * keys * value width.
  constexpr std::int64_t attention(const Node &node) const {
    const std::vector<Dim> &queries = operand(node, 0), &keys = operand(node, 1);
    std::int64_t width = value(queries.back()) + (node.op == Op::attention ? value(node.shape.back()) : 0);
    return 2 * elements(queries) / value(queries.back()) * value(keys[keys.size() - 2]) * width;
  }
  constexpr std::int64_t loop(const Node &node) const {
    if (!has_body(node))
      return 0;
    std::int64_t times = node.op == Op::scan ? value(operand(node, node.attributes.states)[0]) : 1;
    return times * region(node.attributes.index);
  }
  constexpr const std::vector<Dim> &operand(const Node &node, int number) const {
    return graph.nodes[node.operands[number]].shape;
  }
  constexpr std::int64_t elements(const std::vector<Dim> &shape) const {
    std::int64_t product = 1;
    for (const Dim &dim : shape)
      product *= value(dim);
    return product;
  }
  constexpr std::int64_t value(const Dim &dim) const {
    return dim.value([&](const Symbol &symbol) { return value(symbol); });
  }
  constexpr std::int64_t value(const Symbol &symbol) const {
    for (const Extent &extent : extents)
      if (same_text(extent.name, symbol.name) && extent.value >= symbol.min && extent.value <= symbol.max)
        return extent.value;
    error::flops_value_missing_or_out_of_bounds_flops_c1(symbol.name, symbol.max);
  }

  const Graph &graph;
  std::initializer_list<Extent> extents;
};

} // namespace detail

/// Additions and multiplications of the contractions (linear, matmul, conv2d, attention; masked elements count) in one
/// call of the entry of that number: `flops<Gpt2>({{"tokens", 128}})`.
template <class M> constexpr std::int64_t flops(std::initializer_list<Extent> extents = {}, int entry = 0) {
  Graph graph = trace<M>();
  return detail::FlopCounter(graph, extents).region(graph.entries[entry].region);
}

} // namespace kiln
