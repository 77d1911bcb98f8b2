// SPDX-License-Identifier: Apache-2.0
//
// Edits that replace a loop by one execution of its body, and that remove a carried value, a sequence or an output.
#include <algorithm>

#include "tests/fuzz/Cuts.h"
#include "tests/fuzz/Edit.h"

namespace kiln::fuzz {

/// Moves the body's nodes into the enclosing region; `arguments` replace the body's arguments.
static void inlineBody(Graph &graph, int number, const std::vector<int> &arguments) {
  const std::vector<int> home = homesOf(graph);
  const int bodyNumber = graph.nodes[number].attributes.index;
  Region &body = graph.regions[bodyNumber], &around = graph.regions[home[number]];
  for (std::size_t i = 0; i < body.arguments.size(); ++i)
    replaceUses(graph, body.arguments[i], arguments[i]);
  auto place = std::find(around.nodes.begin(), around.nodes.end(), number);
  around.nodes.insert(place, body.nodes.begin(), body.nodes.end());
  around.effects.insert(around.effects.end(), body.effects.begin(), body.effects.end());
  body.nodes.clear();
  body.effects.clear();
}

/// Returns the results of a loop, by their number.
static std::vector<std::pair<int, int>> resultsOf(const Graph &graph, int loop) {
  std::vector<std::pair<int, int>> results;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].op == Op::result && graph.nodes[i].operands[0] == loop)
      results.emplace_back(graph.nodes[i].attributes.index, static_cast<int>(i));
  return results;
}

static int addBefore(Graph &graph, int before, Node node) {
  const std::vector<int> home = homesOf(graph);
  std::vector<int> &nodes = graph.regions[home[before]].nodes;
  const int id = static_cast<int>(graph.nodes.size());
  node.scope = graph.nodes[before].scope;
  nodes.insert(std::find(nodes.begin(), nodes.end(), before), id);
  graph.nodes.push_back(std::move(node));
  return id;
}

/// Replaces the loop by its first iteration: slices of the sequences become inputs, and outputs are expanded along
/// their stacked axis. Returns whether it is in an entry.
static bool inlineLoop(RandomModel &model, int number) {
  Graph &graph = model.graph;
  const Node loop = graph.nodes[number];
  const Region body = graph.regions[loop.attributes.index];
  if (entryAround(graph, homesOf(graph)[number]) < 0)
    return false;
  std::vector<int> arguments(loop.operands.begin(), loop.operands.begin() + loop.attributes.states);
  for (std::size_t i = arguments.size(); i < body.arguments.size(); ++i) {
    replaceByInput(model, body.arguments[i]);
    arguments.push_back(body.arguments[i]);
  }
  inlineBody(graph, number, arguments);
  for (auto [index, result] : resultsOf(graph, number)) {
    int value = graph.regions[loop.attributes.index].results[static_cast<std::size_t>(index)];
    if (index >= loop.attributes.states) {
      Node expand;
      expand.op = Op::expand;
      expand.element = graph.nodes[result].element;
      expand.shape = graph.nodes[result].shape;
      expand.operands = {value};
      value = addBefore(graph, result, expand);
    }
    replaceUses(graph, result, value);
  }
  if (loop.op == Op::stack)
    replaceUses(graph, number, graph.regions[loop.attributes.index].results[0]);
  return true;
}

static void inlineStack(RandomModel &model, int number) {
  const int scope = model.graph.regions[model.graph.nodes[number].attributes.index].scope;
  if (!inlineLoop(model, number))
    return;
  Graph &graph = model.graph;
  // The model or the enclosing stack now owns what the layers owned.
  const int parent = graph.scopes[scope].parent;
  std::vector<RandomModel::Input> known;
  for (const Parameter &parameter : graph.parameters)
    known.push_back(model.parameters.count(graph.written(parameter)) ? model.parameters[graph.written(parameter)]
                                                                     : RandomModel::Input{-1, 1});
  for (Parameter &parameter : graph.parameters)
    if (parameter.scope == scope)
      parameter.scope = parent;
  for (StateTensor &state : graph.states)
    if (state.scope == scope)
      state.scope = parent;
  for (Scope &other : graph.scopes)
    if (other.parent == scope)
      other.parent = parent;
  for (Node &node : graph.nodes)
    if (node.scope == scope)
      node.scope = parent;
  for (std::size_t i = 0; i < known.size(); ++i)
    model.parameters[graph.written(graph.parameters[i])] = known[i];
}

std::vector<Edit> cutStacks(const RandomModel &model) {
  std::vector<Edit> edits;
  const Graph &graph = model.graph;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].op != Op::stack)
      continue;
    const int number = static_cast<int>(i), scope = graph.regions[graph.nodes[i].attributes.index].scope;
    edits.push_back([=](RandomModel &m) { inlineStack(m, number); });
    const std::int64_t copies = graph.scopes[scope].copies;
    for (std::int64_t fewer : {std::int64_t{1}, std::int64_t{2}, copies - 1})
      if (fewer < copies && fewer >= 1)
        edits.push_back([=](RandomModel &m) {
          m.graph.scopes[scope].copies = fewer;
          for (Region &region : m.graph.regions)
            if (region.scope == scope)
              region.count = fewer;
        });
  }
  return edits;
}

static void renumber(Graph &graph, int scan, int removed) {
  for (auto [index, result] : resultsOf(graph, scan))
    if (index > removed)
      --graph.nodes[result].attributes.index;
}

static void renumberArguments(Graph &graph, const Region &body) {
  for (std::size_t i = 0; i < body.arguments.size(); ++i)
    graph.nodes[body.arguments[i]].attributes.index = static_cast<int>(i);
}

/// Replaces the state by its initial value in every step and at the end.
static void dropState(RandomModel &model, int number, int state) {
  Graph &graph = model.graph;
  Node &scan = graph.nodes[number];
  Region &body = graph.regions[scan.attributes.index];
  const int initial = scan.operands[static_cast<std::size_t>(state)];
  for (auto [index, result] : resultsOf(graph, number))
    if (index == state)
      replaceUses(graph, result, initial);
  replaceUses(graph, body.arguments[static_cast<std::size_t>(state)], initial);
  scan.operands.erase(scan.operands.begin() + state);
  body.arguments.erase(body.arguments.begin() + state);
  body.results.erase(body.results.begin() + state);
  --scan.attributes.states;
  renumberArguments(graph, body);
  for (auto [index, result] : resultsOf(graph, number))
    if (index == state)
      graph.nodes[result].attributes.index = 0, graph.nodes[result].operands = {initial}; // no node uses it any more
  renumber(graph, number, state);
}

static void dropSequence(RandomModel &model, int number, int sequence) {
  const int argument =
      model.graph.regions[model.graph.nodes[number].attributes.index].arguments[static_cast<std::size_t>(sequence)];
  replaceByInput(model, argument);
  Node &scan = model.graph.nodes[number];
  Region &body = model.graph.regions[scan.attributes.index];
  scan.operands.erase(scan.operands.begin() + sequence);
  body.arguments.erase(body.arguments.begin() + sequence);
  renumberArguments(model.graph, body);
}

static void dropOutput(RandomModel &model, int number, int output) {
  Graph &graph = model.graph;
  for (auto [index, result] : resultsOf(graph, number))
    if (index == output)
      replaceByInput(model, result);
  Region &body = graph.regions[graph.nodes[number].attributes.index];
  body.results.erase(body.results.begin() + output);
  renumber(graph, number, output);
}

/// Edits of the operands and results of a loop.
std::vector<Edit> cutScans(const RandomModel &model) {
  std::vector<Edit> edits;
  const Graph &graph = model.graph;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!has_body(graph.nodes[i]))
      continue;
    const bool isScan = graph.nodes[i].op == Op::scan;
    const int number = static_cast<int>(i), states = graph.nodes[i].attributes.states;
    const Region &body = graph.regions[graph.nodes[i].attributes.index];
    if (isScan)
      edits.push_back([=](RandomModel &m) { inlineLoop(m, number); });
    for (int output = static_cast<int>(body.results.size()) - 1; output >= states; --output)
      edits.push_back([=](RandomModel &m) { dropOutput(m, number, output); });
    for (int state = states - 1; state >= (isScan ? 0 : 1); --state)
      edits.push_back([=](RandomModel &m) { dropState(m, number, state); });
    for (int sequence = static_cast<int>(body.arguments.size()) - 1; sequence >= states; --sequence)
      edits.push_back([=](RandomModel &m) { dropSequence(m, number, sequence); });
  }
  return edits;
}

/// Edits of a loop's results: a carried value stays unchanged; an output is replaced by one of its operands. Further
/// edits replace the loop by one execution of its body, and let the entry return a value of the body.
std::vector<Edit> cutLoopResults(const RandomModel &model) {
  std::vector<Edit> edits;
  const Graph &graph = model.graph;
  std::vector<int> entryOf(graph.regions.size(), -1);
  for (std::size_t e = 0; e < graph.entries.size(); ++e)
    entryOf[graph.entries[e].region] = static_cast<int>(e);
  const std::vector<int> home = homesOf(graph);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node &loop = graph.nodes[i];
    if (!has_body(loop))
      continue;
    const int number = static_cast<int>(i), region = loop.attributes.index;
    const Region &body = graph.regions[region];
    const auto carried = static_cast<std::size_t>(loop.attributes.states);
    for (std::size_t r = 0; r < body.results.size(); ++r) {
      std::vector<int> others = graph.nodes[body.results[r]].operands;
      if (r < carried)
        others = {body.arguments[r]};
      for (int other : others)
        edits.push_back([=](RandomModel &m) { m.graph.regions[region].results[r] = other; });
    }
    const int entry = entryOf[home[i]];
    for (std::size_t k = body.nodes.size(); k > 0 && entry >= 0; --k) {
      const int value = body.nodes[k - 1];
      const Op op = graph.nodes[value].op;
      if (op == Op::scan || op == Op::store)
        continue;
      edits.push_back([=](RandomModel &m) {
        if (m.graph.nodes[number].op == Op::stack)
          inlineStack(m, number);
        else
          inlineLoop(m, number);
        giveBack(m, static_cast<std::size_t>(entry), {value});
      });
    }
  }
  return edits;
}

} // namespace kiln::fuzz
