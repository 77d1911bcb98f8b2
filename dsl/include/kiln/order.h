// SPDX-License-Identifier: Apache-2.0
//
// Brings a traced graph into its final order. C++ does not say in which order `f(x) + g(x)` calls f and g, and
// compilers differ, so nodes, regions and parameters are numbered anew:
// 1. every entry's results are followed depth first, operands in their order, with a stack of its own: a constant
//    expression may not recurse deeply;
// 2. a node is numbered after its operands, a stack after what its body captures and after its body;
// 3. a parameter is numbered with its first node. What no result depends on is left out.
#pragma once

#include <utility>
#include <vector>

#include "kiln/graph.h"

namespace kiln::detail {

class Ordering {
public:
  constexpr explicit Ordering(Graph source)
      : from(std::move(source)), home(from.nodes.size(), -1), number(from.nodes.size(), -1),
        seen(from.nodes.size(), false), parameter(from.parameters.size(), -1) {
    for (int region = 0; region < static_cast<int>(from.regions.size()); ++region) {
      for (int node : from.regions[region].nodes)
        home[node] = region;
      for (int node : from.regions[region].arguments)
        home[node] = region;
    }
  }

  constexpr Graph run() {
    for (Entry &entry : from.entries) {
      entry.region = visit_region(entry.region);
      to.entries.push_back(std::move(entry));
    }
    for (Scope &scope : from.scopes) {
      std::vector<int> kept;
      for (int old : scope.parameters)
        if (parameter[old] >= 0)
          kept.push_back(parameter[old]);
      scope.parameters = std::move(kept);
    }
    to.scopes = std::move(from.scopes);
    return std::move(to);
  }

private:
  /// Numbers a region and everything below it.
  constexpr int visit_region(int old) {
    int id = static_cast<int>(to.regions.size());
    Region made;
    made.count = from.regions[old].count;
    made.scope = from.regions[old].scope;
    to.regions.push_back(std::move(made));
    for (int argument : from.regions[old].arguments)
      to.regions[id].arguments.push_back(place(argument));
    for (int result : from.regions[old].results)
      follow(result, old, id);
    for (int result : from.regions[old].results)
      to.regions[id].results.push_back(number[result]);
    return id;
  }

  struct Step {
    int node;
    std::vector<int> waiting; // what it depends on, last first
  };

  constexpr void follow(int root, int old_region, int region) {
    std::vector<Step> path;
    begin(root, old_region, path);
    while (!path.empty()) {
      if (!path.back().waiting.empty()) {
        int next = path.back().waiting.back();
        path.back().waiting.pop_back();
        begin(next, old_region, path);
        continue;
      }
      int node = path.back().node;
      path.pop_back();
      if (from.nodes[node].op == Op::stack)
        from.nodes[node].attributes.index = visit_region(from.nodes[node].attributes.index);
      int placed = place(node);
      to.regions[region].nodes.push_back(placed);
    }
  }

  /// Starts a node of this region; what an enclosing region holds has its number already.
  constexpr void begin(int node, int region, std::vector<Step> &path) {
    if (seen[node] || home[node] != region)
      return;
    seen[node] = true;
    Step step{node, {}};
    if (from.nodes[node].op == Op::stack)
      captures(from.nodes[node].attributes.index, step.waiting);
    const std::vector<int> &operands = from.nodes[node].operands;
    for (std::size_t i = operands.size(); i > 0; --i)
      step.waiting.push_back(operands[i - 1]);
    path.push_back(std::move(step));
  }

  /// The operands of a body, last first; those that are its own have another home and are passed over by begin.
  constexpr void captures(int region, std::vector<int> &found) const {
    const std::vector<int> &nodes = from.regions[region].nodes;
    for (std::size_t i = nodes.size(); i > 0; --i) {
      const Node &node = from.nodes[nodes[i - 1]];
      for (std::size_t j = node.operands.size(); j > 0; --j)
        if (home[node.operands[j - 1]] != region)
          found.push_back(node.operands[j - 1]);
      if (node.op == Op::stack)
        captures(node.attributes.index, found);
    }
    for (int result : from.regions[region].results)
      if (home[result] != region)
        found.push_back(result);
  }

  constexpr int place(int old) {
    Node &node = from.nodes[old];
    for (int &operand : node.operands)
      operand = number[operand];
    if (node.op == Op::parameter)
      node.attributes.index = place_parameter(node.attributes.index);
    number[old] = static_cast<int>(to.nodes.size());
    seen[old] = true;
    to.nodes.push_back(std::move(node));
    return number[old];
  }

  constexpr int place_parameter(int old) {
    if (parameter[old] < 0) {
      parameter[old] = static_cast<int>(to.parameters.size());
      to.parameters.push_back(std::move(from.parameters[old]));
    }
    return parameter[old];
  }

  Graph from, to;
  std::vector<int> home;   // by old node: its region
  std::vector<int> number; // by old node: its new number
  std::vector<char> seen;  // by old node
  std::vector<int> parameter;
};

constexpr Graph in_order(Graph graph) { return Ordering(std::move(graph)).run(); }

} // namespace kiln::detail
