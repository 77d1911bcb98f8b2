// SPDX-License-Identifier: Apache-2.0
//
// Checks a whole graph against SPEC.md and against the properties of a traced graph:
// 1. scopes, parameters and states are named, and used where they belong;
// 2. each region is the body of one entry or loop, and its nodes use earlier nodes or those of enclosing regions;
// 3. every node has the type that follows from its operands, and something depends on it;
// 4. a named extent has one meaning, and the caller of each entry that uses it determines it.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "kiln/names.h"
#include "tests/fuzz/Shapes.h"

namespace kiln::fuzz {
namespace {

template <class List> bool inRange(int index, const List &list) {
  return index >= 0 && static_cast<std::size_t>(index) < list.size();
}

class Checker {
public:
  explicit Checker(const Graph &graph)
      : graph(graph), isVisible(graph.nodes.size()), isNeeded(graph.nodes.size()), home(graph.nodes.size(), -1),
        isEntered(graph.regions.size()) {}

  std::string run() {
    checkNames();
    for (const Entry &entry : graph.entries) {
      if (!problem.empty())
        return problem;
      checkEntry(entry);
    }
    for (const auto &[name, symbol] : everywhere)
      if (*symbol.least) {
        auto found = everywhere.find(symbol.least);
        require(found != everywhere.end() && found->second.min >= symbol.min && found->second.max <= symbol.max,
                "dim_c6");
      }
    if (problem.empty())
      checkAllUsed();
    return problem;
  }

private:
  bool require(bool holds, const std::string &rule) {
    if (!holds && problem.empty())
      problem = rule;
    return holds;
  }
  bool requireAt(int node, bool holds, const std::string &rule) {
    return require(holds, "node " + std::to_string(node) + ": " + rule);
  }

  void checkNames() {
    require(!graph.entries.empty(), "a graph has an entry");
    for (std::size_t i = 0; i < graph.scopes.size(); ++i) {
      const Scope &scope = graph.scopes[i];
      require((scope.parent == -1) == (i == 0) && scope.parent < static_cast<int>(i),
              "scopes stand below earlier ones");
      require(i == 0 || *scope.name, "layer_c2");
      for (std::size_t j = 1; j < i; ++j)
        require(graph.scopes[j].parent != scope.parent || std::strcmp(graph.scopes[j].name, scope.name) != 0,
                "layer_c1");
    }
    std::set<std::string> known;
    for (const Parameter &parameter : graph.parameters) {
      require(inRange(parameter.scope, graph.scopes) && *parameter.leaf, "a parameter has a scope and a name");
      checkShape({parameter.shape.begin(), parameter.shape.end()}, nullptr);
      require(problem.empty() && known.insert(graph.name(parameter)).second, "parameters have different names");
    }
    known.clear();
    for (const StateTensor &state : graph.states) {
      require(inRange(state.scope, graph.scopes) && *state.leaf && !state.shape.empty(), "state_c4");
      checkShape({state.shape.begin(), state.shape.end()}, nullptr);
      require(problem.empty() && known.insert(graph.name(state)).second, "states have different names");
    }
  }

  /// `stated`: the symbols that an entry's caller determines; null where there is no caller.
  void checkShape(const Extents &shape, const std::map<std::string, Symbol> *stated) {
    for (const Dim &dim : shape) {
      require(dim.factor != 0 || dim.second == 0, "dim_c4");
      for (int i = 0; i < Dim::max_terms; ++i) {
        const Symbol &first = dim.symbols[2 * i], &second = dim.symbols[2 * i + 1];
        require((i < dim.terms()) == first.present() && (first.present() || !second.present()), "dim_c3");
        require(std::strcmp(first.name, second.name) <= 0 || !second.present(), "sorted symbols");
      }
      require(dim.min() >= 1, "tensor_c1");
      for (const Symbol &symbol : dim.symbols)
        if (symbol.present())
          require(stated && stated->count(symbol.name) && stated->at(symbol.name) == symbol,
                  std::string("nobody states ") + symbol.name);
    }
    require(mostElements(shape) <= INT32_MAX, "a tensor has fewer than 2^31 elements");
  }

  void addSymbols(const Extents &shape, std::map<std::string, Symbol> &stated) {
    for (const Dim &dim : shape)
      for (const Symbol &symbol : dim.symbols)
        if (symbol.present()) {
          require(symbol.min >= 1 && symbol.min <= symbol.max, "dim_c2");
          require(everywhere.emplace(symbol.name, symbol).first->second == symbol, "dim_c5");
          stated.emplace(symbol.name, symbol);
        }
  }
  void addSymbolsOfNodes(const Region &region, std::map<std::string, Symbol> &stated) {
    for (int number : region.nodes) {
      if (!require(inRange(number, graph.nodes), "a region has nodes"))
        return;
      const Node &node = graph.nodes[number];
      if (brings_symbols(node))
        addSymbols(node.shape, stated);
      if (has_body(node) && require(inRange(node.attributes.index, graph.regions), "a loop has a body"))
        addSymbolsOfNodes(graph.regions[node.attributes.index], stated);
    }
  }

  void checkEntry(const Entry &entry) {
    if (!require(inRange(entry.region, graph.regions), "an entry has a region"))
      return;
    const Region &region = graph.regions[entry.region];
    std::set<std::string> names;
    for (const auto *list : {&entry.input_names, &entry.output_names})
      for (const char *name : *list)
        require(detail::is_identifier(name) && names.insert(name).second, "model_c3, model_c4");
    require(detail::is_identifier(entry.name) && entries.insert(entry.name).second, "model_c5");
    require(entry.input_names.size() == region.arguments.size(), "model_c1");
    require(entry.output_names.size() == region.results.size() && entry.output_names.size() <= 16, "model_c2");
    require(!region.arguments.empty() && region.arguments.size() <= 16, "model_c7, model_c9");
    require(region.scope == -1 && region.count == 1, "an entry is no stack");

    std::map<std::string, Symbol> stated;
    for (int argument : region.arguments)
      if (require(inRange(argument, graph.nodes), "an entry has arguments"))
        addSymbols(graph.nodes[argument].shape, stated);
    if (problem.empty())
      addSymbolsOfNodes(region, stated);
    changes.clear();
    if (problem.empty())
      checkRegion(entry.region, entry.region, {}, stated);
    if (!problem.empty())
      return;
    need(region);
  }

  /// `body`: the region of the innermost enclosing stack, or of the entry; `stacks`: the scopes of the enclosing
  /// stacks.
  void checkRegion(int number, int body, const std::vector<int> &stacks, const std::map<std::string, Symbol> &stated) {
    const Region &region = graph.regions[number];
    require(!isEntered[number], "a region is the body of one entry or loop");
    isEntered[number] = true;
    for (std::size_t i = 0; i < region.arguments.size() && problem.empty(); ++i) {
      int argument = region.arguments[i];
      if (!require(inRange(argument, graph.nodes) && home[argument] < 0, "a region has arguments of its own"))
        return;
      const Node &node = graph.nodes[argument];
      requireAt(argument, node.op == Op::input && node.attributes.index == static_cast<int>(i), "no argument");
      checkShape(node.shape, &stated);
      enter(argument, number);
    }
    for (int node : region.nodes) {
      if (!problem.empty() || !require(inRange(node, graph.nodes) && home[node] < 0, "a node stands in one region"))
        return;
      checkNode(node, number, body, stacks, stated);
      enter(node, number);
    }
    for (int result : region.results)
      require(inRange(result, graph.nodes) && isVisible[result] && graph.nodes[result].op != Op::scan &&
                  graph.nodes[result].op != Op::store,
              "a region has results that are computed in it");
    std::vector<int> effects;
    for (int node : region.nodes)
      if (graph.nodes[node].op == Op::append || graph.nodes[node].op == Op::store)
        effects.push_back(node);
    std::vector<int> listed = region.effects;
    std::sort(listed.begin(), listed.end());
    std::sort(effects.begin(), effects.end());
    require(listed == effects, "a region lists what changes states");
    for (const auto *list : {&region.arguments, &region.nodes})
      for (int node : *list)
        isVisible[node] = false;
  }
  void enter(int node, int region) {
    home[node] = region;
    isVisible[node] = true;
  }

  void checkNode(int number, int region, int body, const std::vector<int> &stacks,
                 const std::map<std::string, Symbol> &stated) {
    const Node &node = graph.nodes[number];
    std::vector<Type> operands;
    for (int operand : node.operands) {
      if (!requireAt(number, inRange(operand, graph.nodes) && isVisible[operand], "an operand out of sight"))
        return;
      const Op op = graph.nodes[operand].op;
      const bool isLoop = op == Op::scan || (op == Op::stack && node.op == Op::result);
      requireAt(number, isLoop == (node.op == Op::result) && op != Op::store, "an operand that is no value");
      operands.push_back(typeOf(graph.nodes[operand]));
    }
    requireAt(number, node.scope == -1 || inRange(node.scope, graph.scopes), "a scope");
    requireAt(number, node.op != Op::input, "an input that is no argument");
    checkShape(node.shape, &stated);
    if (!problem.empty())
      return;
    if (node.op == Op::stack)
      return checkStack(number, stacks, stated);
    if (node.op == Op::scan)
      return checkScan(number, body, stacks, stated);
    if (node.op == Op::result)
      return checkResult(number);
    if (node.op == Op::parameter)
      checkParameter(number, region, body, stacks);
    if (uses_state(node))
      checkState(number, region, body, stacks);
    if (node.op == Op::store || !problem.empty())
      return;
    std::string why;
    const std::optional<Type> type = inferType(node, operands, why);
    if (requireAt(number, type.has_value(), why))
      requireAt(number, *type == typeOf(node), "is " + textOf(typeOf(node)) + ", not " + textOf(*type));
    if (node.op == Op::embedding)
      checkPositions(number);
  }

  void checkPositions(int number) {
    const Node *source = &graph.nodes[graph.nodes[number].operands[0]];
    if (source->attributes.at_end)
      source = &graph.nodes[source->operands[0]];
    if (source->op == Op::positions)
      requireAt(number, atLeast(graph.nodes[graph.nodes[number].operands[1]].shape[0], source->shape[0]),
                "embedding_c3");
  }

  std::vector<int> stacksAround(int scope) const {
    std::vector<int> stacks;
    for (; scope > 0; scope = graph.scopes[scope].parent)
      if (graph.scopes[scope].copies > 0)
        stacks.insert(stacks.begin(), scope);
    return stacks;
  }

  void checkParameter(int number, int region, int body, const std::vector<int> &stacks) {
    const Node &node = graph.nodes[number];
    if (!requireAt(number, inRange(node.attributes.index, graph.parameters), "a known parameter"))
      return;
    const Parameter &parameter = graph.parameters[node.attributes.index];
    requireAt(number,
              parameter.element == node.element &&
                  Extents(parameter.shape.begin(), parameter.shape.end()) == node.shape,
              "parameter_c1");
    requireAt(number, region == body && stacks == stacksAround(parameter.scope), "parameter_c2");
    requireAt(number, parametersOf.insert({region, node.attributes.index}).second, "one node a parameter");
    usedParameters.insert(node.attributes.index);
  }

  void checkState(int number, int region, int body, const std::vector<int> &stacks) {
    const Node &node = graph.nodes[number];
    if (!requireAt(number, inRange(node.attributes.index, graph.states), "a known state") ||
        !requireAt(number, node.operands.size() == (node.op != Op::state), "as many operands as a state takes"))
      return;
    const StateTensor &state = graph.states[node.attributes.index];
    usedStates.insert(node.attributes.index);
    requireAt(number, region == body && stacks == stacksAround(state.scope) && scansAround == 0, "state_c1");
    Extents whole(state.shape.begin(), state.shape.end());
    const Node &value = node.op == Op::store ? graph.nodes[node.operands[0]] : node;
    if (node.op != Op::store && !value.shape.empty()) {
      requireAt(number, value.shape[0].max() <= state.shape[0], "append_c3");
      whole[0] = value.shape[0];
    }
    requireAt(number, value.element == state.element && value.shape == whole, "append_c1, store_c1");
    Change &change = changes[node.attributes.index];
    requireAt(number, !change.isAppended && !(node.op == Op::append && (change.isRead || change.isStored)), "state_c2");
    requireAt(number, !(node.op == Op::store && change.isStored), "state_c3");
    change.isAppended |= node.op == Op::append;
    change.isRead |= node.op == Op::state;
    change.isStored |= node.op == Op::store;
  }

  void checkStack(int number, std::vector<int> stacks, const std::map<std::string, Symbol> &stated) {
    const Node &node = graph.nodes[number];
    const Region &body = graph.regions[node.attributes.index];
    const auto carried = static_cast<std::size_t>(std::max(node.attributes.states, 0));
    if (!requireAt(number,
                   carried >= 1 && carried <= node.operands.size() && body.arguments.size() == node.operands.size() &&
                       body.results.size() >= carried,
                   "stack_c1"))
      return;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      Type given = typeOf(graph.nodes[node.operands[i]]);
      if (i >= carried) {
        if (!requireAt(number, given.rank() >= 1 && given.shape[0] == Dim(body.count), "stack_c6"))
          return;
        given.shape.erase(given.shape.begin());
      } else
        requireAt(number, inRange(body.results[i], graph.nodes) && typeOf(graph.nodes[body.results[i]]) == given,
                  "stack_c1");
      requireAt(number, inRange(body.arguments[i], graph.nodes) && typeOf(graph.nodes[body.arguments[i]]) == given,
                "stack_c1");
    }
    requireAt(number, typeOf(graph.nodes[node.operands[0]]) == typeOf(node), "stack_c1");
    requireAt(number,
              inRange(body.scope, graph.scopes) && body.count >= 1 && graph.scopes[body.scope].copies == body.count,
              "stack_c2");
    if (!problem.empty())
      return;
    stacks.push_back(body.scope);
    requireAt(number, stacks == stacksAround(body.scope), "a stack's scope lies in that of the stack around");
    checkRegion(node.attributes.index, node.attributes.index, stacks, stated);
  }

  void checkScan(int number, int around, const std::vector<int> &stacks, const std::map<std::string, Symbol> &stated) {
    const Node &node = graph.nodes[number];
    const Region &body = graph.regions[node.attributes.index];
    const int states = node.attributes.states, count = static_cast<int>(node.operands.size());
    requireAt(number, states >= 0 && states < count, "scan_c3");
    if (!requireAt(number,
                   static_cast<int>(body.arguments.size()) == count &&
                       static_cast<int>(body.results.size()) >= states && !body.results.empty() && body.scope == -1 &&
                       body.count == 1,
                   "scan_c2"))
      return;
    Dim length;
    for (int i = 0; i < count; ++i) {
      Type given = typeOf(graph.nodes[node.operands[i]]);
      if (!requireAt(number, inRange(body.arguments[i], graph.nodes), "scan_c2"))
        return;
      if (i >= states) {
        if (!requireAt(number, given.rank() >= 1 && (i == states || given.shape[0] == length), "scan_c1"))
          return;
        length = given.shape[0];
        given.shape.erase(given.shape.begin());
      } else
        requireAt(number, inRange(body.results[i], graph.nodes) && typeOf(graph.nodes[body.results[i]]) == given,
                  "scan_c2");
      requireAt(number, typeOf(graph.nodes[body.arguments[i]]) == given, "scan_c1");
    }
    if (!problem.empty())
      return;
    ++scansAround;
    checkRegion(node.attributes.index, around, stacks, stated);
    --scansAround;
  }

  void checkResult(int number) {
    const Node &node = graph.nodes[number];
    if (!requireAt(number, node.operands.size() == 1, "a result of one loop"))
      return;
    const Node &scan = graph.nodes[node.operands[0]];
    const Region &body = graph.regions[scan.attributes.index];
    if (!requireAt(number, inRange(node.attributes.index, body.results), "a result that the loop has"))
      return;
    Type type = typeOf(graph.nodes[body.results[node.attributes.index]]);
    requireAt(number, scan.op == Op::scan || node.attributes.index > 0, "a result that the stack is not itself");
    if (node.attributes.index >= scan.attributes.states)
      type.shape.insert(type.shape.begin(), scan.op == Op::stack
                                                ? Dim(body.count)
                                                : graph.nodes[scan.operands[scan.attributes.states]].shape[0]);
    requireAt(number, type == typeOf(node) && type.shape.size() <= largest_rank, "a result of the loop's type");
  }

  void need(const Region &region) {
    for (const auto *list : {&region.results, &region.effects})
      for (int node : *list)
        need(node);
  }
  void need(int number) {
    if (isNeeded[number])
      return;
    isNeeded[number] = true;
    for (int operand : graph.nodes[number].operands)
      need(operand);
    if (has_body(graph.nodes[number]))
      need(graph.regions[graph.nodes[number].attributes.index]);
  }

  void checkAllUsed() {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
      requireAt(static_cast<int>(i), home[i] >= 0 && (isNeeded[i] || graph.nodes[i].op == Op::input),
                "nothing depends on it");
    require(std::count(isEntered.begin(), isEntered.end(), false) == 0, "a region that nothing enters");
    require(usedParameters.size() == graph.parameters.size(), "a parameter that nothing uses");
    require(usedStates.size() == graph.states.size(), "a state that nothing uses");
  }

  struct Change {
    bool isRead = false, isAppended = false, isStored = false;
  };

  const Graph &graph;
  std::string problem;
  std::vector<bool> isVisible, isNeeded; // by node
  std::vector<int> home;                 // by node: its region
  std::vector<bool> isEntered;           // by region
  std::map<std::string, Symbol> everywhere;
  std::set<std::string> entries;
  std::set<std::pair<int, int>> parametersOf; // by region
  std::set<int> usedParameters, usedStates;
  std::map<int, Change> changes; // by state, of the entry
  int scansAround = 0;
};

} // namespace

std::string check(const Graph &graph) { return Checker(graph).run(); }

} // namespace kiln::fuzz
