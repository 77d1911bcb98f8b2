// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/Edit.h"

#include <algorithm>
#include <cstring>

#include "kiln/order.h"
#include "tests/fuzz/Facts.h"

namespace kiln::fuzz {

Dim dimOf(const std::string &text, const std::vector<Symbol> &symbols) {
  Dim sum;
  bool isFirst = true;
  for (std::size_t at = 0; at < text.size();) {
    const bool isNegative = text[at] == '-';
    at += isNegative || text[at] == '+';
    const std::size_t end = std::min(text.find_first_of("+-", at), text.size());
    Dim term = isNegative ? -1 : 1;
    while (at < end) {
      const std::size_t stop = std::min(text.find('*', at), end);
      const std::string word = text.substr(at, stop - at);
      at = std::min(stop + 1, end);
      auto found = std::find_if(symbols.begin(), symbols.end(), [&](const Symbol &s) { return word == s.name; });
      Dim factor(static_cast<std::int64_t>(std::strtoll(word.c_str(), nullptr, 10)));
      if (found != symbols.end()) {
        factor = Dim();
        factor.factor = 1;
        factor.symbols[0] = *found;
      }
      term = term * factor;
    }
    sum = isFirst ? term : sum + term;
    isFirst = false;
  }
  return sum;
}

std::vector<int> homesOf(const Graph &graph) {
  std::vector<int> home(graph.nodes.size(), -1);
  for (std::size_t i = 0; i < graph.regions.size(); ++i)
    for (const auto *list : {&graph.regions[i].arguments, &graph.regions[i].nodes})
      for (int node : *list)
        home[node] = static_cast<int>(i);
  return home;
}

int entryAround(const Graph &graph, int region) {
  const std::vector<int> home = homesOf(graph);
  while (region >= 0) {
    for (std::size_t i = 0; i < graph.entries.size(); ++i)
      if (graph.entries[i].region == region)
        return static_cast<int>(i);
    int around = -1;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
      if (has_body(graph.nodes[i]) && graph.nodes[i].attributes.index == region)
        around = home[i];
    region = around;
  }
  return -1;
}

void replaceUses(Graph &graph, int from, int to) {
  for (Node &node : graph.nodes)
    if (node.op != Op::result) // of the loop, whose number may also be its first value
      std::replace(node.operands.begin(), node.operands.end(), from, to);
  for (Region &region : graph.regions)
    std::replace(region.results.begin(), region.results.end(), from, to);
}

int addInput(RandomModel &model, int entry, const Type &type, const RandomModel::Input &range) {
  Entry &to = model.graph.entries[static_cast<std::size_t>(entry)];
  Region &region = model.graph.regions[to.region];
  const int id = static_cast<int>(model.graph.nodes.size());
  Node node;
  node.op = Op::input;
  node.element = type.element;
  node.shape = type.shape;
  node.scope = 0;
  node.attributes.index = static_cast<int>(region.arguments.size());
  model.graph.nodes.push_back(std::move(node));
  region.arguments.push_back(id);
  std::string name;
  for (int number = node.attributes.index;; ++number) { // reductions leave gaps in the numbers
    name = "x" + std::to_string(number);
    if (std::none_of(to.input_names.begin(), to.input_names.end(), [&](const char *known) { return name == known; }))
      break;
  }
  to.input_names.push_back(model.names->emplace_back(name).c_str());
  model.inputs[static_cast<std::size_t>(entry)].push_back(range);
  return id;
}

/// Finds the limit that the users of an integer, possibly after data movement, impose on it.
static void limit(const Graph &graph, int node, std::optional<Dim> &below, double &low, int depth) {
  for (std::size_t i = 0; i < graph.nodes.size() && depth < 8; ++i) {
    const Node &user = graph.nodes[i];
    for (std::size_t k = 0; k < user.operands.size(); ++k) {
      if (user.operands[k] != node)
        continue;
      std::optional<Dim> most;
      if (user.op == Op::gather && k == 1)
        most = graph.nodes[user.operands[0]].shape[static_cast<std::size_t>(user.attributes.axis)];
      else if (user.op == Op::embedding && k == 0)
        most = graph.nodes[user.operands[1]].shape[0];
      else if (user.attributes.has_lengths && k + 1 == user.operands.size()) {
        const std::vector<Dim> &keys = graph.nodes[user.operands[1]].shape;
        most = keys[keys.size() - 2];
        most->offset += 1;
        low = 1;
      } else if (user.op >= Op::reshape && user.op <= Op::slice)
        limit(graph, static_cast<int>(i), below, low, depth + 1);
      if (most && (!below || atLeast(*below, *most)))
        below = most;
    }
  }
}

void replaceByInput(RandomModel &model, int number) {
  const Node node = model.graph.nodes[number];
  RandomModel::Input range;
  if (node.element == ElementType::boolean)
    range = {0, 1, true};
  if (node.element == ElementType::i32) {
    std::optional<Dim> below;
    double low = 0;
    limit(model.graph, number, below, low, 0);
    range = {low, below ? static_cast<double>(below->max() - 1) : low, true};
    if (below)
      range.limit = limitText(*below);
  }
  const int entry = entryAround(model.graph, homesOf(model.graph)[number]);
  if (entry >= 0)
    replaceUses(model.graph, number, addInput(model, entry, {node.element, node.shape}, range));
}

void replaceExtents(RandomModel &model, const std::function<Dim(const Dim &)> &replaced) {
  const std::vector<Symbol> symbols = symbolsOf(model.graph);
  for (auto &inputs : model.inputs)
    for (RandomModel::Input &input : inputs)
      if (!input.limit.empty()) {
        // The limit of a length is the number of keys plus one.
        Dim before = dimOf(input.limit, symbols);
        before.offset -= input.low == 1;
        Dim after = replaced(before);
        after.offset += input.low == 1;
        input.limit = limitText(after);
        input.high = static_cast<double>(after.max() - 1);
      }
  Graph &graph = model.graph;
  for (Node &node : graph.nodes)
    for (Dim &dim : node.shape)
      dim = replaced(dim);
  auto replaceNumber = [&](std::int64_t &extent) { extent = std::max<std::int64_t>(1, replaced(Dim(extent)).max()); };
  for (Parameter &parameter : graph.parameters)
    for (std::int64_t &extent : parameter.shape)
      replaceNumber(extent);
  for (StateTensor &state : graph.states)
    for (std::int64_t &extent : state.shape)
      replaceNumber(extent);
}

namespace {

/// Infers all types again from those of inputs, parameters, constants and states, in the order of execution.
class Inference {
public:
  explicit Inference(Graph &graph) : graph(graph) {}

  bool run() {
    for (const Entry &entry : graph.entries)
      if (!infer(graph.regions[entry.region]))
        return false;
    return true;
  }

private:
  bool infer(const Region &region) {
    for (int number : region.nodes)
      if (!infer(graph.nodes[number]))
        return false;
    return true;
  }

  bool infer(Node &node) {
    auto operand = [&](std::size_t i) -> Node & { return graph.nodes[node.operands[i]]; };
    if (has_body(node)) {
      const Region &body = graph.regions[node.attributes.index];
      const int sequences = static_cast<int>(node.operands.size()) - node.attributes.states;
      if (sequences < (node.op == Op::scan) || body.results.empty())
        return false;
      if (node.op == Op::stack)
        node.shape = operand(0).shape, node.element = operand(0).element;
      for (std::size_t i = 0; i < node.operands.size(); ++i) {
        Node &argument = graph.nodes[body.arguments[i]];
        argument.element = operand(i).element;
        argument.shape = operand(i).shape;
        if (static_cast<int>(i) < node.attributes.states)
          continue;
        if (argument.shape.empty() || (node.op == Op::stack && !(argument.shape[0] == Dim(body.count))))
          return false;
        argument.shape.erase(argument.shape.begin());
      }
      return infer(body);
    }
    if (node.op == Op::result) {
      const Node &scan = operand(0);
      const Region &body = graph.regions[scan.attributes.index];
      const Node &inside = graph.nodes[body.results[static_cast<std::size_t>(node.attributes.index)]];
      node.element = inside.element;
      node.shape = inside.shape;
      if (node.attributes.index >= scan.attributes.states)
        node.shape.insert(node.shape.begin(),
                          scan.op == Op::stack
                              ? Dim(body.count)
                              : graph.nodes[scan.operands[static_cast<std::size_t>(scan.attributes.states)]].shape[0]);
      return true;
    }
    if (node.op == Op::store)
      return true;
    adapt(node);
    std::vector<Type> types;
    for (int number : node.operands)
      types.push_back(typeOf(graph.nodes[number]));
    std::string why;
    const std::optional<Type> type = inferType(node, types, why);
    if (type)
      node.element = type->element, node.shape = type->shape;
    return type.has_value();
  }

  /// Adapts the attributes of an operation to new operands.
  void adapt(Node &node) {
    Attributes &a = node.attributes;
    const Extents from = node.operands.empty() ? Extents() : graph.nodes[node.operands[0]].shape;
    if (!from.empty() && a.axis >= static_cast<int>(from.size()))
      a.axis = static_cast<int>(from.size()) - 1;
    switch (node.op) {
    case Op::parameter: {
      const Parameter &parameter = graph.parameters[a.index];
      node.shape.assign(parameter.shape.begin(), parameter.shape.end());
      break;
    }
    case Op::constant:
      adaptConstant(node);
      break;
    case Op::state:
    case Op::append: {
      const StateTensor &state = graph.states[a.index];
      for (std::size_t i = 1; i < node.shape.size() && i < state.shape.size(); ++i)
        node.shape[i] = state.shape[i];
      break;
    }
    case Op::reshape:
      adaptReshape(node, from);
      break;
    case Op::transpose:
      adaptTranspose(node, from);
      break;
    case Op::expand:
      adaptExpand(node, from);
      break;
    case Op::slice:
      adaptSlice(node, from);
      break;
    case Op::conv2d: {
      const Extents weight = graph.nodes[node.operands[1]].shape;
      if (weight.size() == 4 && isFixed(weight))
        a.window.kernel = {static_cast<int>(weight[2].offset), static_cast<int>(weight[3].offset)};
      break;
    }
    default:
      break;
    }
  }

  /// Repeats its values.
  static void adaptConstant(Node &node) {
    if (!isFixed(node.shape))
      return;
    std::vector<double> &values = node.attributes.values;
    const std::vector<double> before = values;
    values.resize(static_cast<std::size_t>(mostElements(node.shape)));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = before[i % before.size()];
  }

  static void adaptTranspose(Node &node, const Extents &from) {
    std::vector<int> &permutation = node.attributes.permutation;
    if (permutation.size() == from.size() || from.size() < 2)
      return;
    permutation.clear();
    for (int i = 0; i < static_cast<int>(from.size()); ++i)
      permutation.push_back(i);
    std::swap(permutation[from.size() - 1], permutation[from.size() - 2]);
  }

  static void adaptExpand(Node &node, const Extents &from) {
    if (from.size() > node.shape.size())
      node.shape = from;
    for (std::size_t i = 1; i <= from.size() && i <= node.shape.size(); ++i)
      if (!(from[from.size() - i] == Dim(1)))
        node.shape[node.shape.size() - i] = from[from.size() - i];
  }

  static void adaptSlice(Node &node, const Extents &from) {
    const auto axis = static_cast<std::size_t>(std::max(node.attributes.axis, 0));
    if (node.shape.size() != from.size() && !from.empty()) {
      const Dim part = node.shape.empty() ? Dim(1) : node.shape[std::min(axis, node.shape.size() - 1)];
      node.shape = from;
      node.shape[axis] = part;
    }
    if (axis >= from.size() || node.shape.size() != from.size() || !from[axis].fixed() || !node.shape[axis].fixed())
      return;
    const std::int64_t whole = from[axis].offset, part = std::min(node.shape[axis].offset, whole);
    node.shape[axis] = part;
    node.attributes.start = std::min(node.attributes.start, whole - part);
  }

  /// Adapts one extent so that the number of elements stays the same.
  static void adaptReshape(Node &node, const Extents &from) {
    if (sameCount(from, node.shape))
      return;
    auto constant = [](const Extents &shape, std::size_t without) {
      std::int64_t product = 1;
      for (std::size_t i = 0; i < shape.size(); ++i)
        if (i != without)
          product *= shape[i].fixed() ? shape[i].offset : shape[i].factor;
      return product;
    };
    const std::int64_t count = constant(from, from.size());
    for (std::size_t i = node.shape.size(); i > 0; --i) {
      const Dim before = node.shape[i - 1];
      const std::int64_t others = constant(node.shape, i - 1);
      if (others == 0 || count % others != 0 || (!before.fixed() && (before.offset != 0 || before.second != 0)))
        continue;
      Dim &dim = node.shape[i - 1];
      if (dim.fixed())
        dim = count / others;
      else
        dim.factor = count / others;
      if (sameCount(from, node.shape))
        return;
      dim = before;
    }
    if (node.shape.size() == from.size())
      node.shape = from;
  }

  Graph &graph;
};

} // namespace

static void dropUnusedInputs(RandomModel &model) {
  Graph &graph = model.graph;
  std::vector<bool> isUsed(graph.nodes.size());
  for (const Node &node : graph.nodes)
    for (int operand : node.operands)
      isUsed[operand] = true;
  for (const Region &region : graph.regions)
    for (int result : region.results)
      isUsed[result] = true;
  for (std::size_t e = 0; e < graph.entries.size(); ++e) {
    Entry &entry = graph.entries[e];
    std::vector<int> &arguments = graph.regions[entry.region].arguments;
    for (std::size_t i = arguments.size(); i > 0 && arguments.size() > 1; --i)
      if (!isUsed[arguments[i - 1]]) {
        const auto at = static_cast<std::ptrdiff_t>(i) - 1;
        arguments.erase(arguments.begin() + at);
        entry.input_names.erase(entry.input_names.begin() + at);
        model.inputs[e].erase(model.inputs[e].begin() + at);
      }
    for (std::size_t i = 0; i < arguments.size(); ++i)
      graph.nodes[arguments[i]].attributes.index = static_cast<int>(i);
  }
}

Graph ordered(Graph graph) {
  graph = detail::in_order(std::move(graph));
  for (Region &region : graph.regions)
    std::sort(region.effects.begin(), region.effects.end());
  return detail::in_order(std::move(graph));
}

/// Reduces the limits of inputs that are indices and lengths to the reduced extents.
static void narrowInputs(RandomModel &model) {
  const std::vector<Symbol> symbols = symbolsOf(model.graph);
  for (std::size_t e = 0; e < model.inputs.size(); ++e)
    for (std::size_t i = 0; i < model.inputs[e].size(); ++i) {
      RandomModel::Input &input = model.inputs[e][i];
      std::optional<Dim> below;
      double low = 0;
      limit(model.graph, model.graph.regions[model.graph.entries[e].region].arguments[i], below, low, 0);
      const bool isWithin = !below || (input.limit.empty() ? input.high < static_cast<double>(below->min())
                                                           : atLeast(*below, dimOf(input.limit, symbols)));
      if (isWithin)
        continue;
      input.limit = limitText(*below);
      input.high = static_cast<double>(below->max() - 1);
      input.low = std::min(input.low, input.high);
    }
}

std::optional<RandomModel> tidied(RandomModel model) {
  model.graph = ordered(std::move(model.graph));
  if (!Inference(model.graph).run())
    return {};
  narrowInputs(model);
  RandomModel smaller = model;
  dropUnusedInputs(smaller);
  smaller.graph = ordered(std::move(smaller.graph));
  for (RandomModel *result : {&smaller, &model})
    if (check(result->graph).empty() && checkIndices(*result).empty())
      return std::move(*result);
  return {};
}

} // namespace kiln::fuzz
