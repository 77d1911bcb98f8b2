// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "tests/fuzz/Cuts.h"
#include "tests/fuzz/Edit.h"

namespace kiln::fuzz {

static void keepEntries(RandomModel &model, const std::vector<std::size_t> &kept) {
  std::vector<Entry> entries;
  std::vector<std::vector<RandomModel::Input>> inputs;
  for (std::size_t i : kept) {
    entries.push_back(model.graph.entries[i]);
    inputs.push_back(model.inputs[i]);
  }
  model.graph.entries = entries;
  model.inputs = inputs;
}

std::vector<Edit> cutEntries(const RandomModel &model) {
  std::vector<Edit> edits;
  const std::size_t count = model.graph.entries.size();
  for (std::size_t i = 0; i < count && count > 1; ++i)
    edits.push_back([i](RandomModel &m) { keepEntries(m, {i}); });
  for (std::size_t i = 0; i < count && count > 2; ++i)
    edits.push_back([i, count](RandomModel &m) {
      std::vector<std::size_t> kept;
      for (std::size_t k = 0; k < count; ++k)
        if (k != i)
          kept.push_back(k);
      keepEntries(m, kept);
    });
  return edits;
}

void giveBack(RandomModel &model, std::size_t number, const std::vector<int> &results) {
  Entry &entry = model.graph.entries[number];
  model.graph.regions[entry.region].results = results;
  entry.output_names.clear();
  for (std::size_t i = 0; i < results.size(); ++i)
    entry.output_names.push_back(model.names->emplace_back("y" + std::to_string(i)).c_str());
}

/// Edits that keep one result only, return an earlier node instead, remove one result, or replace a result by one of
/// its operands.
std::vector<Edit> cutResults(const RandomModel &model) {
  std::vector<Edit> edits;
  const Graph &graph = model.graph;
  for (std::size_t e = 0; e < graph.entries.size(); ++e) {
    const Region &region = graph.regions[graph.entries[e].region];
    const std::vector<int> results = region.results;
    for (int result : results)
      if (results.size() > 1)
        edits.push_back([=](RandomModel &m) { giveBack(m, e, {result}); });
    for (std::size_t quarter = 1; quarter < 4 && region.nodes.size() >= 6; ++quarter) {
      std::size_t at = region.nodes.size() * quarter / 4;
      while (at > 0 && (graph.nodes[region.nodes[at]].op == Op::scan || graph.nodes[region.nodes[at]].op == Op::store))
        --at;
      const int node = region.nodes[at];
      edits.push_back([=](RandomModel &m) { giveBack(m, e, {node}); });
    }
    for (std::size_t i = 0; i < results.size() && (results.size() > 1 || !region.effects.empty()); ++i) {
      std::vector<int> fewer = results;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      edits.push_back([=](RandomModel &m) { giveBack(m, e, fewer); });
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Node &node = graph.nodes[results[i]];
      for (int operand : node.op == Op::result ? graph.nodes[node.operands[0]].operands : node.operands) {
        std::vector<int> others = results;
        others[i] = operand;
        edits.push_back([=](RandomModel &m) { giveBack(m, e, others); });
      }
    }
  }
  return edits;
}

static void dropNode(Graph &graph, int node) {
  for (Region &region : graph.regions)
    for (auto *list : {&region.nodes, &region.effects})
      list->erase(std::remove(list->begin(), list->end(), node), list->end());
}

/// Edits that remove a store; replace an append by an input or by its operand; or return the stored value instead.
std::vector<Edit> cutEffects(const RandomModel &model) {
  std::vector<Edit> edits;
  for (std::size_t i = 0; i < model.graph.nodes.size(); ++i) {
    const int number = static_cast<int>(i);
    const Op op = model.graph.nodes[i].op;
    if (op != Op::store && op != Op::append)
      continue;
    edits.push_back([=](RandomModel &m) {
      if (op == Op::append)
        replaceByInput(m, number);
      dropNode(m.graph, number);
    });
    if (op == Op::append)
      edits.push_back([=](RandomModel &m) {
        replaceUses(m.graph, number, m.graph.nodes[number].operands[0]);
        dropNode(m.graph, number);
      });
    for (std::size_t e = 0; e < model.graph.entries.size(); ++e)
      edits.push_back([=](RandomModel &m) {
        giveBack(m, e, {m.graph.nodes[number].operands[0]});
        dropNode(m.graph, number);
      });
  }
  return edits;
}

/// Edits that replace a node by an input, the last nodes first: these have the most operands, which are then unused.
std::vector<Edit> cutToInputs(const RandomModel &model) {
  std::vector<Edit> edits;
  std::vector<bool> isArgument(model.graph.nodes.size());
  for (const Entry &entry : model.graph.entries)
    for (int argument : model.graph.regions[entry.region].arguments)
      isArgument[argument] = true;
  for (std::size_t i = model.graph.nodes.size(); i > 0; --i) {
    const int number = static_cast<int>(i) - 1;
    const Node &node = model.graph.nodes[number];
    if (node.op == Op::scan || node.op == Op::store || node.op == Op::append)
      continue;
    if (isArgument[number])
      continue; // already an input
    edits.push_back([=](RandomModel &m) { replaceByInput(m, number); });
  }
  return edits;
}

/// Edits that replace a node by one of its operands. Types are inferred again if that is possible.
std::vector<Edit> cutToOperands(const RandomModel &model) {
  std::vector<Edit> edits;
  for (std::size_t i = model.graph.nodes.size(); i > 0; --i) {
    const int number = static_cast<int>(i) - 1;
    const Node &node = model.graph.nodes[number];
    if (node.op == Op::scan || node.op == Op::store || node.op == Op::append)
      continue;
    const std::vector<int> from = node.op == Op::result ? model.graph.nodes[node.operands[0]].operands : node.operands;
    for (int operand : from)
      if (model.graph.nodes[operand].element == node.element)
        edits.push_back([=](RandomModel &m) { replaceUses(m.graph, number, operand); });
  }
  return edits;
}

/// Returns the nodes on which a node depends, apart from its operands.
static std::set<int> ancestorsOf(const Graph &graph, int number) {
  const std::vector<int> &operands = graph.nodes[number].operands;
  std::vector<int> todo = operands;
  std::set<int> found;
  while (!todo.empty()) {
    const int node = todo.back();
    todo.pop_back();
    for (int operand : graph.nodes[node].operands)
      if (found.insert(operand).second)
        todo.push_back(operand);
  }
  for (int operand : operands)
    found.erase(operand);
  return found;
}

/// Edits that replace a node by one of its type on which it depends through others.
std::vector<Edit> cutToAncestors(const RandomModel &model) {
  std::vector<Edit> edits;
  const Graph &graph = model.graph;
  const std::vector<int> home = homesOf(graph);
  for (std::size_t i = graph.nodes.size(); i > 0; --i) {
    const int number = static_cast<int>(i) - 1;
    const Op op = graph.nodes[number].op;
    if (op == Op::scan || op == Op::store || op == Op::append)
      continue;
    for (int ancestor : ancestorsOf(graph, number)) {
      const Node &other = graph.nodes[ancestor];
      if (other.op != Op::scan && other.element == graph.nodes[number].element && home[ancestor] == home[number])
        edits.push_back([=](RandomModel &m) { replaceUses(m.graph, number, ancestor); });
    }
  }
  return edits;
}

/// Edits that merge two inputs, replace an input by a constant, or replace a weight by another one of its type.
std::vector<Edit> cutInputs(const RandomModel &model) {
  std::vector<Edit> edits;
  const Graph &graph = model.graph;
  for (const Entry &entry : graph.entries) {
    std::vector<int> sources = graph.regions[entry.region].arguments;
    for (int node : graph.regions[entry.region].nodes)
      if (graph.nodes[node].op == Op::parameter)
        sources.push_back(node);
    for (std::size_t i = 0; i < sources.size(); ++i)
      for (std::size_t k = 0; k < i; ++k) {
        const int from = sources[i], to = sources[k];
        if (graph.nodes[from].element == graph.nodes[to].element)
          edits.push_back([=](RandomModel &m) { replaceUses(m.graph, from, to); });
      }
  }
  return edits;
}

std::int64_t costOf(const Graph &graph) {
  auto bits = [](std::int64_t number) {
    std::int64_t count = 0;
    for (; number > 1; number /= 2)
      ++count;
    return count;
  };
  std::int64_t cost = 0;
  for (const Node &node : graph.nodes) {
    const Attributes &a = node.attributes;
    const bool isSource = node.op == Op::input || node.op == Op::constant;
    cost += isSource ? 300 : node.op == Op::parameter ? 400 : has_body(node) ? 1500 : 1000;
    for (const Dim &dim : node.shape) {
      cost += 6 + bits(dim.max()) * 4 + (dim.fixed() && dim.offset % 2 != 0 && dim.offset > 1);
      if (!dim.fixed())
        cost += 10 + 20 * (dim.second != 0) + 5 * (dim.offset != 0) + 5 * (dim.factor != 1) +
                10 * dim.symbols[1].present() + 5 * (*dim.symbols[0].least != 0) + bits(dim.symbols[0].min);
    }
    const Window &w = a.window;
    for (const Pair &pair : {w.kernel, w.stride, Pair(w.padding.height + 1, w.padding.width + 1), w.dilation})
      cost += bits(pair.height) + bits(pair.width) + (pair.height > 1) + (pair.width > 1);
    cost += 5 * (a.groups > 1) + 5 * a.causal + 5 * (a.window_keys > 0) + 5 * (a.softcap != 0) + 5 * a.has_mask +
            5 * a.has_sinks + 5 * a.has_lengths + 5 * a.reverse + 2 * a.at_end;
    cost += 2 * bits(a.heads) + 3 * (a.heads != a.key_value_heads) + (a.weight_order != WeightOrder::out_in) +
            (a.start != 0);
    cost += (node.op == Op::sinusoidal && a.base != 10000) + bits(static_cast<std::int64_t>(a.values.size())) +
            static_cast<std::int64_t>(node.operands.size());
    for (std::size_t i = 0; i < a.values.size(); ++i)
      cost += a.values[i] != a.values[0] || (i == 0 && a.values[i] != 0 && a.values[i] != 1);
    for (std::size_t i = 0; i < a.permutation.size(); ++i)
      cost += a.permutation[i] != static_cast<int>(i);
  }
  for (const Region &region : graph.regions)
    cost += 200 + 20 * (region.count > 1) + region.count + 20 * static_cast<std::int64_t>(region.results.size()) +
            20 * static_cast<std::int64_t>(region.effects.size());
  return cost + 500 * static_cast<std::int64_t>(graph.entries.size());
}

} // namespace kiln::fuzz
