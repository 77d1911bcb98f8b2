// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/Coverage.h"

#include <algorithm>
#include <set>

#include "tests/fuzz/PrintNode.h"
#include "tests/fuzz/Shapes.h"

namespace kiln::fuzz {
namespace {

class Counter {
public:
  explicit Counter(const Graph &graph) : graph(graph), uses(graph.nodes.size()), home(graph.nodes.size(), -1) {}

  std::set<std::string> run() {
    for (std::size_t r = 0; r < graph.regions.size(); ++r) {
      for (const auto *list : {&graph.regions[r].arguments, &graph.regions[r].nodes})
        for (int node : *list)
          home[node] = static_cast<int>(r);
    }
    for (const Node &node : graph.nodes)
      for (int operand : node.operands)
        ++uses[operand];
    for (const Region &region : graph.regions)
      for (int result : region.results)
        ++uses[result];
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
      node(static_cast<int>(i));
    for (const Entry &entry : graph.entries)
      countEntry(graph.regions[entry.region]);
    found.insert("entries " + std::to_string(graph.entries.size()));
    shared();
    return found;
  }

private:
  void add(bool is, const std::string &thing) {
    if (is)
      found.insert(thing);
  }

  const Node &operand(const Node &node, std::size_t i) const { return graph.nodes[node.operands[i]]; }

  void node(int number) {
    common(number);
    operation(number);
  }

  void common(int number) {
    const Node &n = graph.nodes[number];
    const std::string op = name_of(n.op);
    found.insert(op);
    found.insert("rank " + std::to_string(n.shape.size()));
    add(n.element == ElementType::i32, op + " of i32");
    add(n.element == ElementType::boolean, op + " of boolean");
    add(uses[number] == 2, "used twice");
    add(uses[number] > 2, "used thrice");
    for (int operand : n.operands)
      add(home[operand] != home[number] && graph.nodes[operand].op != Op::parameter, "captured by a loop");
    extents(n);
  }

  void operation(int number) {
    const Node &n = graph.nodes[number];
    const Attributes &a = n.attributes;
    const std::string op = name_of(n.op);
    switch (n.op) {
    case Op::constant:
      constant(n);
      break;
    case Op::embedding:
      add(operand(n, 1).op != Op::parameter, "embedding of a computed table");
      break;
    case Op::linear:
      linear(n);
      break;
    case Op::grouped_linear:
      groupedLinear(n);
      break;
    case Op::matmul:
      matmul(n);
      break;
    case Op::softmax:
    case Op::log_softmax:
      add(a.axis + 1 < static_cast<int>(n.shape.size()), "softmax along another axis");
      break;
    case Op::cumsum:
      add(a.axis + 1 < static_cast<int>(n.shape.size()), "cumsum along another axis");
      break;
    case Op::conv2d:
      conv2d(n);
      break;
    case Op::max_pool2d:
    case Op::avg_pool2d:
      window(a.window, "pool");
      break;
    case Op::attention:
    case Op::attention_scores:
      attention(n);
      break;
    case Op::concat:
      concat(n);
      break;
    case Op::slice:
      slice(n);
      break;
    case Op::gather:
      gather(n);
      break;
    case Op::mean:
    case Op::max:
    case Op::sum:
    case Op::argmax:
      add(a.axis < static_cast<int>(n.shape.size()), op + " along another axis");
      break;
    case Op::argsort:
      add(a.reverse, "argsort descending");
      add(!(alongAxis(n, n) == alongAxis(n, operand(n, 0))), "argsort of the first positions");
      add(a.axis + 1 < static_cast<int>(n.shape.size()), "argsort along another axis");
      break;
    case Op::sinusoidal:
      sinusoidal(n);
      break;
    case Op::stack:
      stack(n, number);
      break;
    case Op::scan:
      scan(n, number);
      break;
    case Op::state:
    case Op::append:
      state(n, op);
      break;
    default:
      break;
    }
  }

  void constant(const Node &n) {
    const std::vector<double> &values = n.attributes.values;
    add(!n.shape.empty(), "constant with a shape");
    add(std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) != values.end(),
        "constant of several values");
  }

  void sinusoidal(const Node &n) {
    add(!n.attributes.values.empty(), "sinusoidal of frequencies");
    add(!n.attributes.pair_axes.empty(), "sinusoidal of several axes");
    add(operand(n, 0).element == ElementType::f32, "sinusoidal of f32 positions");
    add(operand(n, 0).shape.size() > 1, "sinusoidal of positions per sequence");
  }

  void linear(const Node &n) {
    add(n.attributes.weight_order == WeightOrder::in_out, "linear in_out");
    add(n.operands.size() == 3, "linear with bias");
    add(operand(n, 1).op != Op::parameter, "linear with a computed weight");
    add(!isFixed(operand(n, 1).shape), "linear with a run-time weight");
    add(n.shape.size() == 1, "linear of a vector");
  }

  void groupedLinear(const Node &n) {
    add(n.attributes.weight_order == WeightOrder::in_out, "grouped_linear in_out");
    add(n.operands.size() == 4, "grouped_linear with biases");
    add(operand(n, 2).shape[0] == Dim(1), "grouped_linear of one group");
    add(!n.shape[0].fixed(), "grouped_linear of run-time rows");
  }

  void matmul(const Node &n) {
    add(operand(n, 0).shape.size() != operand(n, 1).shape.size(), "matmul of two ranks");
    add(operand(n, 1).op == Op::transpose, "matmul of a transpose");
    add(n.operands[0] == n.operands[1], "matmul with itself");
  }

  void conv2d(const Node &n) {
    const Extents weight = operand(n, 1).shape;
    const int groups = n.attributes.groups;
    const bool hasOneOutput = groups > 1 && weight[0] == Dim(groups);
    add(n.operands.size() == 3, "conv2d with bias");
    add(groups > 1, "conv2d groups");
    add(hasOneOutput && weight[1] == Dim(1), "conv2d depthwise");
    add(hasOneOutput && weight[1].min() > 1, "conv2d several inputs, one output a group");
    add(n.shape.size() > 3, "conv2d of a batch");
    window(n.attributes.window, "conv2d");
  }

  const Dim &alongAxis(const Node &node, const Node &of) const {
    return of.shape[static_cast<std::size_t>(node.attributes.axis)];
  }

  void concat(const Node &n) {
    add(n.operands.size() > 2, "concat of several");
    add(n.operands.size() == 1, "concat of one");
    add(!alongAxis(n, n).fixed(), "concat along a run-time axis");
  }

  void slice(const Node &n) {
    add(n.attributes.at_end, "slice at_end");
    add(n.attributes.start > 0, "slice from a start");
    add(!alongAxis(n, n).fixed(), "slice of dynamic extent");
    add(n.attributes.at_end && !alongAxis(n, operand(n, 0)).fixed(), "slice at a run-time end");
  }

  void gather(const Node &n) {
    const Op by = operand(n, 1).op;
    add(n.attributes.axis > 0, "gather along another axis");
    add(by == Op::input, "gather by an input");
    add(by == Op::constant, "gather by a constant");
    add(by != Op::input && by != Op::constant, "gather by what is computed");
    add(!alongAxis(n, operand(n, 0)).fixed(), "gather along a run-time axis");
    found.insert("gather by rank " + std::to_string(operand(n, 1).shape.size()));
  }

  void stack(const Node &n, int number) {
    const Region &body = graph.regions[n.attributes.index];
    add(depth(home[number]) > 0, "nested loops");
    add(graph.regions[home[number]].scope >= 0, "nested stacks");
    add(detail::is_number_part(graph.scopes[body.scope].name), "stack of a pattern");
    found.insert("stack of " + std::to_string(body.count));
    const auto carried = static_cast<std::size_t>(n.attributes.states);
    add(carried > 1, "stack of several values");
    add(n.operands.size() > carried, "stack with slices");
    add(body.results.size() > carried, "stack with outputs");
    for (int inner : body.nodes)
      add(graph.nodes[inner].op == Op::parameter, "stack with weights");
  }

  void window(const Window &w, const std::string &op) {
    add(!(w.stride == Pair(1)), op + " stride");
    add(!(w.padding == Pair(0)), op + " padding");
    add(!(w.dilation == Pair(1)), op + " dilation");
    add(w.kernel.height != w.kernel.width, op + " not square");
  }

  void attention(const Node &n) {
    const Attributes &a = n.attributes;
    add(a.causal, "attention causal");
    add(a.has_mask, "attention mask");
    add(a.window_keys > 0, "attention window");
    add(a.softcap != 0, "attention softcap");
    add(a.has_sinks, "attention sinks");
    add(a.has_lengths, "attention lengths");
    add(a.heads > 1, "attention heads");
    add(a.key_value_heads < a.heads, "attention grouped heads");
    add(a.causal && a.has_mask && a.has_lengths, "attention with all options");
    if (a.has_mask) {
      const Node &given = operand(n, n.op == Op::attention ? 3 : 2);
      add(given.op == Op::reshape && operand(given, 0).op == Op::mul, "mask by distance");
      add(given.op == Op::reshape && operand(given, 0).op == Op::transpose, "mask of a table");
      add(given.op == Op::where && operand(given, 0).op == Op::equal, "mask of documents");
      const std::size_t mask = operand(n, n.op == Op::attention ? 3 : 2).shape.size(), q = operand(n, 0).shape.size();
      found.insert(mask > q ? "mask by head" : mask == q ? "mask of the full rank" : "mask of a lower rank");
    }
  }

  void scan(const Node &n, int number) {
    const Attributes &a = n.attributes;
    const Region &body = graph.regions[a.index];
    const auto states = static_cast<std::size_t>(a.states);
    add(a.reverse, "scan reverse");
    add(states == 0, "scan without states");
    add(states > 1, "scan of several states");
    add(n.operands.size() > states + 1, "scan of several sequences");
    add(body.results.size() == states, "scan without outputs");
    add(body.results.size() > states + 1, "scan of several outputs");
    add(!operand(n, states).shape[0].fixed(), "scan of run-time length");
    add(depth(home[number]) > 0, "nested loops");
    for (std::size_t i = states; i < body.results.size(); ++i)
      for (std::size_t s = 0; s < states; ++s)
        add(body.results[i] == body.arguments[s], "scan whose output is a state");
  }

  void state(const Node &n, const std::string &op) {
    add(!n.shape[0].fixed(), op + " of run-time rows");
    add(graph.scopes[graph.states[n.attributes.index].scope].copies > 0, "state of a stack");
  }

  void extents(const Node &n) {
    for (const Dim &dim : n.shape) {
      add(dim == Dim(1), "extent 1");
      add(dim.fixed() && dim.offset > 60, "extent above 60");
      add(dim.fixed() && dim.offset > 250, "extent above 250");
      if (dim.fixed())
        continue;
      add(true, "dynamic extent");
      add(dim.offset != 0, "run-time sum");
      add(dim.factor > 1, "run-time multiple");
      add(dim.degree() == 2, "run-time product");
      add(dim.terms() == 2, "run-time sum of two");
      add(*dim.symbols[0].least != 0, "run-time least");
    }
    if (n.op == Op::reshape && n.shape.size() > operand(n, 0).shape.size())
      add(true, "reshape that splits");
    if (n.op == Op::reshape && n.shape.size() < operand(n, 0).shape.size())
      add(!isFixed(n.shape), "reshape that joins dynamic extents");
  }

  void countEntry(const Region &region) {
    add(region.results.size() > 1, "several results");
    add(region.results.empty(), "no result");
    std::set<int> different(region.results.begin(), region.results.end());
    add(different.size() < region.results.size(), "a result twice");
    for (int result : region.results) {
      const Op op = graph.nodes[result].op;
      add(op == Op::input, "an input returned");
      add(op == Op::parameter, "a parameter returned");
      add(op == Op::constant, "a constant returned");
    }
    for (int argument : region.arguments)
      add(uses[argument] == 0, "an unused input");
    add(region.nodes.empty(), "no operation");
    add(region.nodes.size() > 20, "many operations");
  }

  /// Counts weights and states that several entries, loops or operations use.
  void shared() {
    std::map<int, int> parameters, states;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const Node &n = graph.nodes[i];
      if (n.op == Op::parameter) {
        add(parameters[n.attributes.index]++ > 0, "a weight of two entries");
        bool isTable = false, isWeight = false;
        for (const Node &user : graph.nodes)
          for (std::size_t k = 0; k < user.operands.size(); ++k) {
            isTable |= user.operands[k] == static_cast<int>(i) && user.op == Op::embedding;
            isWeight |= user.operands[k] == static_cast<int>(i) && user.op == Op::linear;
          }
        add(isTable && isWeight, "a tied table");
      }
      if (uses_state(n))
        add(states[n.attributes.index]++ > 0, "a state used twice");
    }
    std::map<int, int> projections;
    for (const Node &n : graph.nodes)
      if (n.op == Op::linear && operand(n, 1).op == Op::parameter)
        add(++projections[n.operands[0]] == 3, "three projections of one value");
  }

  int depth(int region) const {
    for (const Entry &entry : graph.entries)
      if (entry.region == region)
        return 0;
    return 1;
  }

  const Graph &graph;
  std::vector<int> uses, home;
  std::set<std::string> found;
};

} // namespace

void count(const Graph &graph, std::map<std::string, int> &things) {
  for (const std::string &thing : Counter(graph).run())
    ++things[thing];
}

} // namespace kiln::fuzz
