// SPDX-License-Identifier: Apache-2.0
//
// Brings a traced graph into its final order. C++ does not specify in which order `f(x) + g(x)` calls f and g, and
// compilers differ, so nodes, regions and parameters are renumbered:
// 1. The results of every entry are followed depth first, operands in their order. The traversal is iterative, since
// constant expressions limit recursion.
// 2. A node is numbered after its operands, a loop after its captures and its body.
// 3. A parameter, a function and a scope are numbered with their first node. Values that no result depends on are
// dropped.
#pragma once

#include <utility>
#include <vector>

#include "kiln/graph.h"

namespace kiln::detail {

class Ordering {
public:
  constexpr explicit Ordering(Graph source)
      : from(std::move(source)), home(from.nodes.size(), -1), number(from.nodes.size(), -1), seen(from.nodes.size(), 0),
        scope(from.scopes.size(), -1), parameter(from.parameters.size(), -1), state(from.states.size(), -1),
        function(from.functions.size(), -1) {
    for (int region = 0; region < static_cast<int>(from.regions.size()); ++region) {
      for (int node : from.regions[region].nodes)
        home[node] = region;
      for (int node : from.regions[region].arguments)
        home[node] = region;
    }
    to.nodes.reserve(from.nodes.size());
    place_scope(0);
  }

  constexpr Graph run() {
    for (Entry &entry : from.entries) {
      entry.region = visit(entry.region);
      to.entries.push_back(std::move(entry));
    }
    return std::move(to);
  }

private:
  /// Numbers a region and all regions nested in it.
  constexpr int visit(int old) {
    int id = static_cast<int>(to.regions.size());
    to.regions.push_back({});
    to.regions[id].count = from.regions[old].count;
    to.regions[id].scope = from.regions[old].scope < 0 ? -1 : place_scope(from.regions[old].scope);
    for (int argument : from.regions[old].arguments) {
      seen[argument] = 1;
      to.regions[id].arguments.push_back(place(argument));
    }
    for (int result : from.regions[old].results)
      follow(result, old, id);
    for (int effect : from.regions[old].effects)
      follow(effect, old, id);
    for (int result : from.regions[old].results)
      to.regions[id].results.push_back(number[result]);
    for (int effect : from.regions[old].effects)
      to.regions[id].effects.push_back(number[effect]);
    return id;
  }

  /// Depth-first traversal with a worklist: an entry is a node to visit, or ~node to number after its dependencies.
  constexpr void follow(int root, int old_region, int region) {
    std::vector<int> todo{root};
    while (!todo.empty()) {
      int node = todo.back();
      todo.pop_back();
      if (node >= 0) {
        begin(node, old_region, todo);
        continue;
      }
      node = ~node;
      if (has_body(from.nodes[node]))
        from.nodes[node].attributes.index = visit(from.nodes[node].attributes.index);
      to.regions[region].nodes.push_back(place(node));
    }
  }

  /// Skips nodes of other regions, which already have numbers.
  constexpr void begin(int node, int region, std::vector<int> &todo) {
    if (seen[node] || home[node] != region)
      return;
    seen[node] = 1;
    todo.push_back(~node);
    if (has_body(from.nodes[node]))
      add_captures(from.nodes[node].attributes.index, todo);
    const std::vector<int> &operands = from.nodes[node].operands;
    for (std::size_t i = operands.size(); i > 0; --i)
      todo.push_back(operands[i - 1]);
  }

  /// Pushes the captures of a body so that the first one used is processed first.
  constexpr void add_captures(int region, std::vector<int> &todo) const {
    for (int result : from.regions[region].results)
      if (home[result] != region)
        todo.push_back(result);
    const std::vector<int> &nodes = from.regions[region].nodes;
    for (std::size_t i = nodes.size(); i > 0; --i) {
      const Node &node = from.nodes[nodes[i - 1]];
      for (std::size_t j = node.operands.size(); j > 0; --j)
        if (home[node.operands[j - 1]] != region)
          todo.push_back(node.operands[j - 1]);
      if (has_body(node))
        add_captures(node.attributes.index, todo);
    }
  }

  constexpr int place(int old) {
    Node &node = from.nodes[old];
    for (int &operand : node.operands)
      operand = number[operand];
    if (node.op == Op::parameter)
      node.attributes.index = place_parameter(node.attributes.index);
    if (uses_state(node))
      node.attributes.index = place_state(node.attributes.index);
    if (node.op == Op::custom)
      node.attributes.index = place_function(node.attributes.index);
    node.scope = place_scope(node.scope);
    number[old] = static_cast<int>(to.nodes.size());
    to.nodes.push_back(std::move(node));
    return number[old];
  }

  constexpr int place_parameter(int old) {
    if (parameter[old] < 0) {
      parameter[old] = static_cast<int>(to.parameters.size());
      Parameter &moved = from.parameters[old];
      moved.scope = place_scope(moved.scope);
      to.scopes[moved.scope].parameters.push_back(parameter[old]);
      to.parameters.push_back(std::move(moved));
    }
    return parameter[old];
  }

  constexpr int place_state(int old) {
    if (state[old] < 0) {
      StateTensor &moved = from.states[old];
      moved.scope = place_scope(moved.scope);
      state[old] = static_cast<int>(to.states.size());
      to.scopes[moved.scope].states.push_back(state[old]);
      to.states.push_back(std::move(moved));
    }
    return state[old];
  }

  constexpr int place_function(int old) {
    if (function[old] < 0) {
      function[old] = static_cast<int>(to.functions.size());
      to.functions.push_back(std::move(from.functions[old]));
    }
    return function[old];
  }

  constexpr int place_scope(int old) {
    if (scope[old] >= 0)
      return scope[old];
    int parent = from.scopes[old].parent < 0 ? -1 : place_scope(from.scopes[old].parent);
    int id = static_cast<int>(to.scopes.size());
    to.scopes.push_back({});
    to.scopes[id].parent = parent;
    to.scopes[id].name = from.scopes[old].name;
    to.scopes[id].copies = from.scopes[old].copies;
    last_child.push_back(-1);
    if (parent >= 0) {
      int &former = last_child[parent];
      (former < 0 ? to.scopes[parent].first_child : to.scopes[former].next_sibling) = id;
      former = id;
    }
    return scope[old] = id;
  }

  Graph from, to;
  std::vector<int> home;                              // indexed by old node: its region
  std::vector<int> number;                            // indexed by old node: its new number
  std::vector<char> seen;                             // indexed by old node
  std::vector<int> scope, parameter, state, function; // indexed by old number: the new one
  std::vector<int> last_child;                        // indexed by new scope
};

constexpr Graph in_order(Graph graph) { return Ordering(std::move(graph)).run(); }

} // namespace kiln::detail
