// SPDX-License-Identifier: Apache-2.0
//
// Optimisers, and the inputs, gradients and states that training entries have in addition to those of their functions.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "kiln/graph.h"
#include "kiln/rules.h"

namespace kiln {

/// SGD: w -= learning_rate b with b = momentum b + g; weight_decay w is added to g.
struct Sgd {
  double momentum = 0, weight_decay = 0;
  constexpr Training training() const {
    return {.update = Update::sgd, .momentum = momentum, .weight_decay = weight_decay};
  }
};

/// Adam (Kingma and Ba 2015, algorithm 1); weight_decay w is added to g.
struct Adam {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
  constexpr Training training() const {
    return {.update = Update::adam, .beta1 = beta1, .beta2 = beta2, .epsilon = epsilon, .weight_decay = weight_decay};
  }
};

/// Adam with decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2): learning_rate weight_decay w is
/// subtracted from w.
struct AdamW {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01;
  constexpr Training training() const {
    return {.update = Update::adamw, .beta1 = beta1, .beta2 = beta2, .epsilon = epsilon, .weight_decay = weight_decay};
  }
};

namespace detail {

/// In the options of an entry 0 means that the option was not given. A given 0 becomes the least number, which no rule
/// permits and which messages print as the 0 that it was.
template <class Number> constexpr Number or_least(Number given) {
  return given != 0 ? given : std::numeric_limits<Number>::lowest();
}
template <class Number> constexpr Number as_written(Number option) {
  return option == std::numeric_limits<Number>::lowest() ? 0 : option;
}

constexpr void mark_parameters(const Graph &graph, int region, std::vector<int> &read) {
  for (int number : graph.regions[region].nodes) {
    const Node &node = graph.nodes[number];
    if (node.op == Op::parameter)
      read[node.attributes.index] = 1;
    if (has_body(node))
      mark_parameters(graph, node.attributes.index, read);
  }
}

/// Whether a region or one nested in it reads or writes states.
constexpr bool has_states(const Graph &graph, int region) {
  for (int number : graph.regions[region].nodes) {
    const Node &node = graph.nodes[number];
    if (family_of(node.op) == Family::state || (has_body(node) && has_states(graph, node.attributes.index)))
      return true;
  }
  return false;
}

/// Whether the options of an entry are valid for its kind of update.
constexpr bool fits_its_kind(const Training &given) {
  const bool is_changing = given.changes_parameters(), has_gradients = given.update != Update::none;
  return (is_changing || (given.clip == 0 && given.average == 0 && given.undecayed.count == 0)) &&
         (has_gradients || (!given.recomputes && given.micro_batches == 0 && given.frozen.count == 0 &&
                            given.activations == ElementType::f32));
}

/// An option of an entry whose value is out of range.
struct Mistake {
  const char *rule = nullptr; // none
  double value = 0;
};
constexpr Mistake find_mistake(const Training &given) {
  if (given.average != 0 && !(given.average > 0 && given.average < 1))
    return {rules::train_c8, as_written(given.average)};
  if (!given.changes_parameters())
    return {};
  const bool is_adam = given.update == Update::adam || given.update == Update::adamw;
  for (double part : {given.momentum, given.beta1, given.beta2})
    if (!(part >= 0 && part < 1))
      return {rules::train_c2, part};
  if (is_adam && !(given.epsilon > 0))
    return {rules::train_c3, given.epsilon};
  if (!(given.weight_decay >= 0))
    return {rules::train_c4, given.weight_decay};
  if (!(given.clip >= 0))
    return {rules::train_c5, as_written(given.clip)};
  return {};
}

constexpr bool can_accumulate(const Graph &graph, const Entry &entry) {
  const Region &region = graph.regions[entry.region];
  auto has_room = [&](int node) { return graph.nodes[node].shape.size() < largest_rank; }; // tensor_c3
  return entry.training.micro_batches > 0 && !has_states(graph, entry.region) &&
         std::all_of(region.arguments.begin(), region.arguments.end(), has_room) &&
         std::all_of(region.results.begin(), region.results.end(), has_room);
}

constexpr bool matches_one(const Names &patterns, const char *name) {
  for (int i = 0; i < patterns.count && i < Names::capacity; ++i)
    if (matches(patterns.items[i], name))
      return true;
  return false;
}

} // namespace detail

/// Whether a region or one nested in it uses dropout.
constexpr bool has_dropout(const Graph &graph, int region) {
  for (int number : graph.regions[region].nodes) {
    const Node &node = graph.nodes[number];
    if (node.op == Op::dropout || (has_body(node) && has_dropout(graph, node.attributes.index)))
      return true;
  }
  return false;
}

/// A scalar input of an entry after the inputs of its function.
struct TrainingInput {
  const char *name;
  ElementType element;
};
inline std::vector<TrainingInput> training_inputs(const Graph &graph, const Entry &entry) {
  std::vector<TrainingInput> inputs;
  const bool is_dropping = entry.training.update != Update::none && has_dropout(graph, entry.region);
  if (entry.training.changes_parameters())
    inputs.push_back({"learning_rate", ElementType::f32});
  if (entry.training.changes_parameters() || is_dropping)
    inputs.push_back({"step", ElementType::i32});
  if (is_dropping)
    inputs.push_back({"seed", ElementType::i32});
  return inputs;
}

/// "grad_h_mlp_weight" for "h.{}.mlp.weight". In a pattern of layers the name has the first layer of the type:
/// "grad_layers_5_weight" for "layers.{6k}.{}.{+5}.{}.weight".
inline std::string gradient_name(const std::string &parameter) {
  std::string name = "grad_";
  for (detail::NameReader reader(parameter); !reader.is_at_end();) {
    const std::string component = reader.take();
    if (detail::is_number_part(component.c_str()) && !detail::ends_number(component.c_str()))
      continue;
    const bool is_number = detail::is_number_part(component.c_str());
    for (char letter : component)
      if (letter == '.')
        name += '_';
      else if (letter != '{' && letter != '}' && !(is_number && letter == '+'))
        name += letter;
    name += is_number ? "_" : "";
  }
  for (std::size_t at; (at = name.find("__")) != std::string::npos;)
    name.erase(at, 1);
  return name;
}

/// The parameters whose gradients an entry computes, in the graph's order: all floating-point parameters that it reads
/// and that are not frozen.
inline std::vector<int> gradient_parameters(const Graph &graph, const Entry &entry) {
  std::vector<int> result;
  if (entry.training.update == Update::none)
    return result;
  std::vector<int> read(graph.parameters.size(), 0);
  detail::mark_parameters(graph, entry.region, read);
  for (std::size_t i = 0; i < read.size(); ++i)
    if (read[i] && floating(graph.parameters[i].element) &&
        !detail::matches_one(entry.training.frozen, graph.written(graph.parameters[i]).c_str()))
      result.push_back(static_cast<int>(i));
  return result;
}

/// The rate at which a parameter that is a running average moves towards its target in a step; 0 for all others.
inline double running_rate(const Graph &graph, int parameter) {
  for (const Node &node : graph.nodes)
    if (node.op == Op::running_average && graph.nodes[node.operands[0]].attributes.index == parameter)
      return node.attributes.rate;
  return 0;
}

/// The optimiser states of a parameter; a state's name is this word, a colon and the parameter's name.
inline std::vector<std::string> optimizer_states(const Graph &graph, const Training &training, int parameter) {
  std::vector<std::string> kept;
  const bool is_optimised = running_rate(graph, parameter) == 0;
  if (is_optimised && training.update == Update::sgd && training.momentum != 0)
    kept = {"momentum"};
  if (is_optimised && (training.update == Update::adam || training.update == Update::adamw))
    kept = {"mean", "square"};
  if (training.average != 0)
    kept.push_back("average");
  return kept;
}
inline std::string optimizer_state_name(const std::string &moment, const std::string &parameter) {
  return moment + ":" + parameter;
}

/// The shape of a parameter's gradient: for a parameter in stacks, the numbers of layers come first.
constexpr std::vector<std::int64_t> gradient_shape(const Graph &graph, const Parameter &parameter) {
  std::vector<std::int64_t> shape(parameter.shape.begin(), parameter.shape.end());
  for (int at = parameter.scope; at > 0; at = graph.scopes[at].parent)
    if (graph.scopes[at].copies > 0)
      shape.insert(shape.begin(), graph.scopes[at].copies);
  return shape;
}

} // namespace kiln
