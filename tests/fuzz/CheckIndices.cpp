// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/Edit.h"
#include "tests/fuzz/Facts.h"

namespace kiln::fuzz {
namespace {

constexpr Facts unknown{-1e30, 1e30, 1e30, {}};

bool same(const Facts &a, const Facts &b) { return a.low == b.low && a.high == b.high && a.below == b.below; }

bool isTop(const Facts &facts) { return same(facts, unknown); }

class Analysis {
public:
  explicit Analysis(const RandomModel &model)
      : model(model), graph(model.graph), facts(graph.nodes.size()), states(graph.states.size(), between(0, 0)) {}

  std::string run() {
    bool isStable = false, isWidened = false;
    for (int round = 0; round < 8 && !isStable; ++round) {
      const std::vector<Facts> before = states;
      follow();
      isStable = true;
      for (std::size_t i = 0; i < states.size(); ++i) {
        if (isTop(before[i]) || same(before[i], states[i]))
          continue;
        isStable = false;
        if (round >= 4) {
          states[i] = unknown;
          isWidened = true;
        }
      }
    }
    if (isWidened) { // iterate to a fixed point, as for loops
      states = stored;
      follow();
    }
    return problem;
  }

private:
  void follow() {
    problem.clear();
    stored.assign(states.size(), between(0, 0));
    for (std::size_t i = 0; i < graph.entries.size(); ++i)
      entry(i);
  }

  void entry(std::size_t number) {
    const Region &region = graph.regions[graph.entries[number].region];
    for (std::size_t i = 0; i < region.arguments.size(); ++i) {
      const RandomModel::Input &input = model.inputs[number][i];
      Facts &at = facts[region.arguments[i]] = between(input.low, input.high);
      if (!input.limit.empty())
        at.below = dimOf(input.limit, symbolsOf(graph));
    }
    nodes(region);
  }

  void nodes(const Region &region) {
    for (int number : region.nodes) {
      const Node &node = graph.nodes[number];
      std::vector<Type> types;
      std::vector<Facts> x;
      for (int operand : node.operands) {
        types.push_back(typeOf(graph.nodes[operand]));
        x.push_back(facts[operand]);
      }
      facts[number] = value(node, number, types, x);
      if (node.op == Op::gather || node.op == Op::embedding) {
        const bool isGather = node.op == Op::gather;
        const Dim &extent =
            types[isGather ? 0 : 1].shape[static_cast<std::size_t>(isGather ? node.attributes.axis : 0)];
        require(x[isGather ? 1 : 0].areIndicesOf(extent), number, "an index");
      }
      if (node.attributes.has_lengths) {
        Dim limit = types[1].shape[types[1].shape.size() - 2];
        limit.offset += 1;
        require(x.back().low >= 0 && x.back().areIndicesOf(limit), number, "a length");
      }
    }
  }
  void require(bool holds, int node, const char *what) {
    if (!holds && problem.empty())
      problem = std::string(what) + " of node " + std::to_string(node) + " may be out of range";
  }

  Facts value(const Node &node, int number, const std::vector<Type> &types, const std::vector<Facts> &x) {
    const int index = node.attributes.index;
    switch (node.op) {
    case Op::parameter: {
      auto known = model.parameters.find(graph.written(graph.parameters[index]));
      return known == model.parameters.end() ? between(-1, 1) : between(known->second.low, known->second.high);
    }
    case Op::append:
    case Op::store:
      stored[index] = hull(stored[index], x[0]);
      states[index] = hull(states[index], x[0]);
      return states[index];
    case Op::state:
      return states[index];
    case Op::stack:
    case Op::scan:
      scans[number] = loop(graph.regions[index], x, static_cast<std::size_t>(node.attributes.states));
      return node.op == Op::stack ? scans[number][0] : Facts();
    case Op::result:
      return scans[node.operands[0]][static_cast<std::size_t>(index)];
    default:
      return factsOf(node, types, x);
    }
  }

  /// Returns the facts of the carried values, then of the stacked outputs. A value that grows between iterations is
  /// widened to unknown; what the body derives from unknown values (a clamp, say) then holds for all iterations.
  std::vector<Facts> loop(const Region &body, std::vector<Facts> x, std::size_t carried) {
    const std::string before = problem;
    const std::vector<Facts> first = x;
    const auto follow = [&] {
      problem = before;
      for (std::size_t i = 0; i < x.size(); ++i)
        facts[body.arguments[i]] = x[i];
      nodes(body);
    };
    bool isStable = false, isWidened = false;
    for (int round = 0; !isStable; ++round) {
      follow();
      isStable = true;
      for (std::size_t i = 0; i < carried; ++i) {
        const Facts next = hull(x[i], facts[body.results[i]]);
        if (isTop(x[i]) || same(next, x[i]))
          continue;
        isStable = false;
        isWidened |= round >= 3;
        x[i] = round < 3 ? next : unknown;
      }
    }
    if (isWidened) {
      for (std::size_t i = 0; i < carried; ++i)
        x[i] = hull(first[i], facts[body.results[i]]);
      follow();
    }
    std::vector<Facts> result(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(carried));
    for (std::size_t i = carried; i < body.results.size(); ++i)
      result.push_back(facts[body.results[i]]);
    return result;
  }

  const RandomModel &model;
  const Graph &graph;
  std::vector<Facts> facts, states, stored; // by node; by state; by state, of stored values
  std::map<int, std::vector<Facts>> scans;
  std::string problem;
};

} // namespace

std::string checkIndices(const RandomModel &model) { return Analysis(model).run(); }

} // namespace kiln::fuzz
