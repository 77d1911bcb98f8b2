// SPDX-License-Identifier: Apache-2.0
//
// 1. Scopes: each is below an earlier one.
// 2. Regions: each is the body of one entry or one loop, and its nodes use only visible values.
// 3. Shapes: element counts are in range, and each name has one meaning.
#include "compiler/frontend/CheckGraph.h"

#include <cstring>

#include "compiler/dialect/Check.h"
#include "kiln/rules.h"
#include "kiln/text.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace kiln {

using mlir::failed;
using mlir::failure;
using mlir::Location;
using mlir::LogicalResult;
using mlir::NameLoc;
using mlir::success;

Location scopeLocation(const Graph &graph, int scope, llvm::StringRef fallback, mlir::MLIRContext *context) {
  std::string path = graph.path(scope);
  return NameLoc::get(mlir::StringAttr::get(context, path.empty() ? fallback : llvm::StringRef(path)));
}

namespace {

constexpr std::int64_t maxElements = INT32_MAX; // kernels index with 32 bits

template <class List> bool inRange(int index, const List &list) {
  return index >= 0 && static_cast<std::size_t>(index) < list.size();
}

class Checker {
public:
  Checker(const Graph &graph, mlir::MLIRContext *context, std::vector<Symbol> &symbols)
      : graph(graph), context(context), symbols(symbols), visible(graph.nodes.size()), entered(graph.regions.size()) {}

  LogicalResult run() {
    if (failed(checkScopes()) || failed(checkParameters()) || failed(checkStates()))
      return failure();
    for (const Entry &entry : graph.entries)
      if (failed(checkSymbolsOfInputs(entry)))
        return failure();
    if (failed(checkSymbolsOfStates()))
      return failure();
    for (const Entry &entry : graph.entries)
      if (failed(checkEntry(entry)))
        return failure();
    return success();
  }

private:
  /// Begins a diagnostic "scope: ".
  mlir::InFlightDiagnostic emit(int scope) {
    std::string path = inRange(scope, graph.scopes) && scopesNest ? graph.path(scope) : "";
    llvm::StringRef name = path.empty() ? llvm::StringRef(entryName) : llvm::StringRef(path);
    mlir::InFlightDiagnostic diagnostic = mlir::emitError(NameLoc::get(mlir::StringAttr::get(context, name)));
    diagnostic << name << ": ";
    return diagnostic;
  }

  /// Emits a diagnostic "scope: rule, got ... [label]".
  LogicalResult fail(int scope, const char *rule, const llvm::Twine &got) {
    return emit(scope) << mlir::kiln::withValues(rule, got);
  }

  /// Emits a diagnostic without a labelled rule: "scope: problem; expected ..., got ...".
  LogicalResult report(int scope, const char *problem, const llvm::Twine &got) {
    return emit(scope) << problem << ", got " << got;
  }

  LogicalResult checkScopes() {
    scopesNest = false;
    for (std::size_t i = 0; i < graph.scopes.size(); ++i) {
      const Scope &scope = graph.scopes[i];
      if (!scope.name || scope.parent < -1 || scope.parent >= static_cast<int>(i) || (scope.parent == -1) != (i == 0))
        return report(-1, "graph: wrong scope; expected a name and an earlier scope around it",
                      llvm::Twine(scope.parent) + " above " + llvm::Twine(i));
      if (scope.copies < 0 || scope.copies > maxElements)
        return report(-1, "graph: wrong number of layers; expected one that 32 bits hold", llvm::Twine(scope.copies));
    }
    scopesNest = true;
    return success();
  }

  LogicalResult checkParameters() {
    for (const Parameter &parameter : graph.parameters) {
      if (!inRange(parameter.scope, graph.scopes) || !parameter.leaf || !*parameter.leaf)
        return report(parameter.scope, "graph: incomplete parameter; expected a scope and a name",
                      llvm::Twine(parameter.scope));
      if (failed(checkElement(parameter.scope, "parameter: unknown element type; expected one of the language",
                              parameter.element)))
        return failure();
      if (!is_known(parameter.storage))
        return emit(parameter.scope) << "parameter: unknown storage; expected " << format_names.data() << ", got "
                                     << static_cast<int>(parameter.storage.element);
      std::vector<Dim> shape(parameter.shape.begin(), parameter.shape.end());
      if (failed(checkShape(parameter.scope, shape)))
        return failure();
    }
    return success();
  }

  LogicalResult checkStates() {
    for (const StateTensor &state : graph.states) {
      if (!inRange(state.scope, graph.scopes) || state.shape.empty())
        return report(state.scope, "graph: incomplete state; expected a scope and a shape", llvm::Twine(state.scope));
      if (failed(checkElement(state.scope, "state: unknown element type; expected one of the language", state.element)))
        return failure();
      std::vector<Dim> shape(state.shape.begin(), state.shape.end());
      if (failed(checkShape(state.scope, shape)))
        return failure();
    }
    return success();
  }

  /// Checks the numbers and the symbols of the terms, so that Dim's functions are defined for it.
  LogicalResult checkTerms(int scope, const Dim &dim) {
    if (std::llabs(dim.offset) > maxElements || (dim.fixed() && dim.second != 0))
      return fail(scope, rules::dim_c3, llvm::Twine(dim.offset) + " + " + llvm::Twine(dim.second));
    for (int i = 0; i < Dim::max_terms; ++i) {
      const std::int64_t factor = i == 0 ? dim.factor : dim.second;
      const Symbol &first = dim.symbols[2 * i], &second = dim.symbols[2 * i + 1];
      if (std::llabs(factor) > maxElements || (factor != 0) != first.present() ||
          (second.present() && !first.present()))
        return fail(scope, rules::dim_c3,
                    llvm::Twine(dim.offset) + " + " + llvm::Twine(factor) + " of " +
                        llvm::Twine(first.present() + second.present()) + " symbols");
      std::int64_t most;
      if (llvm::MulOverflow(first.present() ? first.max : 1, second.present() ? second.max : 1, most) ||
          llvm::MulOverflow(most, factor, most) || llvm::AddOverflow(most, dim.offset, most))
        return fail(scope, rules::dim_c3, "an extent that 64 bits do not hold");
    }
    return success();
  }

  LogicalResult checkShape(int scope, const std::vector<Dim> &shape) {
    if (shape.size() > largest_rank)
      return fail(scope, rules::tensor_c3, Text().put(shape).data());
    std::int64_t elements = 1;
    for (const Dim &dim : shape) {
      if (dim.flaw != Flaw::none)
        return fail(scope, rule_of(dim.flaw), Text().put(dim).data());
      for (const Symbol &symbol : dim.symbols)
        if (symbol.present()) {
          if (!std::memchr(symbol.name, 0, Symbol::capacity) || !std::memchr(symbol.least, 0, Symbol::capacity))
            return fail(scope, rules::dim_c1, llvm::StringRef(symbol.name, Symbol::capacity));
          if (symbol.min < 1 || symbol.max < symbol.min || symbol.max > maxElements)
            return fail(scope, rules::dim_c2,
                        llvm::Twine(symbol.name) + " " + llvm::Twine(symbol.min) + ".." + llvm::Twine(symbol.max));
        }
      if (failed(checkTerms(scope, dim)))
        return failure();
      if (dim.min() < 1)
        return fail(scope, rules::tensor_c1, Text().put(shape).data());
      if (llvm::MulOverflow(elements, dim.max(), elements) || elements > maxElements)
        return fail(scope, rules::tensor_c4, Text().put(shape).data());
    }
    return success();
  }

  LogicalResult checkSymbolsOfInputs(const Entry &entry) {
    if (!entry.name || !*entry.name)
      return fail(-1, rules::model_c3, "no name");
    entryName = entry.name;
    if (!inRange(entry.region, graph.regions))
      return report(-1, "entry: unknown region; expected one of the graph", llvm::Twine(entry.region));
    const Region &region = graph.regions[entry.region];
    if (entry.input_names.size() != region.arguments.size())
      return fail(-1, rules::model_c1,
                  llvm::Twine(entry.input_names.size()) + " names of " + llvm::Twine(region.arguments.size()));
    if (entry.output_names.size() != region.results.size())
      return fail(-1, rules::model_c2,
                  llvm::Twine(entry.output_names.size()) + " names of " + llvm::Twine(region.results.size()));
    for (const auto &names : {entry.input_names, entry.output_names})
      if (llvm::is_contained(names, nullptr))
        return fail(-1, rules::model_c3, "no name");
    for (int argument : region.arguments) {
      if (!inRange(argument, graph.nodes))
        return report(-1, "region: unknown argument; expected a node", llvm::Twine(argument));
      if (failed(checkShape(-1, graph.nodes[argument].shape)) ||
          failed(addSymbols(-1, graph.nodes[argument].shape, true)))
        return failure();
    }
    return success();
  }

  /// A caller can also state the extents of states and of positions (brings_symbols).
  LogicalResult checkSymbolsOfStates() {
    for (const Node &node : graph.nodes)
      if (brings_symbols(node) &&
          (failed(checkShape(node.scope, node.shape)) || failed(addSymbols(node.scope, node.shape, true))))
        return failure();
    for (const Symbol &symbol : symbols)
      if (*symbol.least && llvm::none_of(symbols, [&](const Symbol &other) {
            return same_text(other.name, symbol.least) && other.min >= symbol.min && other.max <= symbol.max;
          }))
        return fail(-1, rules::dim_c6, llvm::Twine(symbol.name) + " from " + symbol.least);
    return success();
  }

  /// Adds the symbols of a shape. Only inputs and states introduce symbols, since a caller can only state their
  /// extents.
  LogicalResult addSymbols(int scope, const std::vector<Dim> &shape, bool isInput) {
    for (const Dim &dim : shape)
      for (const Symbol &symbol : dim.symbols) {
        if (!symbol.present())
          continue;
        auto known = llvm::find_if(symbols, [&](const Symbol &other) { return same_text(other.name, symbol.name); });
        if (known != symbols.end() && !(*known == symbol))
          return fail(scope, rules::dim_c5, Text().put(dim).data());
        if (known != symbols.end())
          continue;
        if (!isInput)
          return fail(scope, rules::dim_c9, symbol.name);
        symbols.push_back(symbol);
      }
    return success();
  }

  LogicalResult checkEntry(const Entry &entry) {
    entryName = entry.name;
    return checkRegion(entry.region, -1, {});
  }

  /// `stacks`: the scopes of the enclosing stacks.
  LogicalResult checkRegion(int number, int scope, std::vector<int> stacks) {
    if (entered[number]++)
      return report(scope, "region: used twice; expected the body of one entry or loop", llvm::Twine(number));
    const Region &region = graph.regions[number];
    std::vector<int> own;
    for (int argument : region.arguments) {
      if (!inRange(argument, graph.nodes) || graph.nodes[argument].op != Op::input || visible[argument])
        return report(scope, "region: wrong argument; expected an input that no other region has",
                      llvm::Twine(argument));
      if (failed(checkValue(argument)))
        return failure();
      visible[argument] = true;
      own.push_back(argument);
    }
    for (int node : region.nodes) {
      if (!inRange(node, graph.nodes) || visible[node])
        return report(scope, "region: unknown or repeated node; expected each of its nodes once", llvm::Twine(node));
      if (failed(checkNode(node, stacks)))
        return failure();
      visible[node] = true;
      own.push_back(node);
    }
    for (int result : region.results)
      if (!inRange(result, graph.nodes) || !visible[result] || has_only_results(graph.nodes[result]))
        return report(scope, "region: wrong result; expected one that is computed in it", llvm::Twine(result));
    for (int effect : region.effects)
      if (!llvm::is_contained(region.nodes, effect) ||
          (graph.nodes[effect].op != Op::append && graph.nodes[effect].op != Op::store))
        return report(scope, "region: wrong effect; expected an append or store among its nodes", llvm::Twine(effect));
    for (int node : own)
      visible[node] = false;
    return success();
  }

  LogicalResult checkElement(int scope, const char *what, ElementType element) {
    if (!is_known(element))
      return report(scope, what, llvm::Twine(static_cast<int>(element)));
    if (only_stored(element))
      return report(scope, "tensor: unsupported element type; expected one that not only stored weights have",
                    name_of(element));
    if (info(element).bits < 8)
      return report(scope, "tensor: unsupported element type; expected one of at least a byte", name_of(element));
    return success();
  }

  LogicalResult checkValue(int number) {
    const Node &node = graph.nodes[number];
    if (failed(checkElement(node.scope, "node: unknown element type; expected one of the language", node.element)))
      return failure();
    if (node.scope != -1 && !inRange(node.scope, graph.scopes))
      return report(-1, "node: unknown scope; expected one of the graph", llvm::Twine(node.scope));
    if (failed(checkShape(node.scope, node.shape)))
      return failure();
    return addSymbols(node.scope, node.shape, false);
  }

  LogicalResult checkNode(int number, std::vector<int> &stacks) {
    const Node &node = graph.nodes[number];
    if (failed(checkValue(number)))
      return failure();
    if (!is_known(node.op) || node.op == Op::input)
      return report(node.scope, "node: unknown operation; expected one of the language",
                    llvm::Twine(static_cast<int>(node.op)));
    for (int operand : node.operands)
      if (!inRange(operand, graph.nodes) || !visible[operand])
        return report(node.scope, "node: wrong operand; expected an earlier node", llvm::Twine(operand));
      else if (has_only_results(graph.nodes[operand]) && node.op != Op::result)
        return emit(node.scope) << name_of(graph.nodes[operand].op)
                                << ": used directly; expected uses of its results, got " << operand;
      else if (node.op == Op::result && !has_body(graph.nodes[operand]) && graph.nodes[operand].op != Op::custom)
        return report(node.scope, "result: wrong operand; expected a scan, a stack or a custom", llvm::Twine(operand));
    if (node.op == Op::result && node.operands.size() != 1)
      return report(node.scope, "result: wrong number of operands; expected one scan",
                    llvm::Twine(node.operands.size()));
    if (node.op == Op::parameter)
      return checkParameter(node, stacks);
    if (uses_state(node))
      return checkState(node, stacks);
    if (node.op == Op::custom)
      return checkCustom(node);
    if (node.op == Op::stack)
      return checkStack(node, stacks);
    if (node.op == Op::scan)
      return checkScan(node, stacks);
    return success();
  }

  LogicalResult checkParameter(const Node &node, llvm::ArrayRef<int> stacks) {
    if (!inRange(node.attributes.index, graph.parameters))
      return report(node.scope, "node: unknown parameter; expected one of the graph",
                    llvm::Twine(node.attributes.index));
    const Parameter &parameter = graph.parameters[node.attributes.index];
    std::vector<Dim> shape(parameter.shape.begin(), parameter.shape.end());
    if (parameter.element != node.element || shape != node.shape)
      return fail(parameter.scope, rules::parameter_c1, Text().put(node.shape).data());
    if (stacks != llvm::ArrayRef(stacksAround(parameter.scope)))
      return fail(parameter.scope, rules::parameter_c2, graph.name(parameter));
    return success();
  }

  std::vector<int> stacksAround(int scope) {
    std::vector<int> stacks;
    for (; scope > 0; scope = graph.scopes[scope].parent)
      if (graph.scopes[scope].copies > 0)
        stacks.insert(stacks.begin(), scope);
    return stacks;
  }

  LogicalResult checkState(const Node &node, llvm::ArrayRef<int> stacks) {
    if (!inRange(node.attributes.index, graph.states))
      return report(node.scope, "node: unknown state; expected one of the graph", llvm::Twine(node.attributes.index));
    if (node.operands.size() != (node.op != Op::state))
      return report(node.scope, "state: wrong number of operands; expected one to write and none to read",
                    llvm::Twine(node.operands.size()));
    const StateTensor &state = graph.states[node.attributes.index];
    if (scans > 0 || stacks != llvm::ArrayRef(stacksAround(state.scope)))
      return fail(state.scope, rules::state_c1, graph.name(state));
    const Node &value = node.op == Op::store ? graph.nodes[node.operands[0]] : node;
    std::vector<Dim> shape(state.shape.begin(), state.shape.end());
    if (value.shape.size() == shape.size() && node.op != Op::store)
      shape[0] = value.shape[0];
    if (value.element != state.element || value.shape != shape)
      return fail(state.scope, node.op == Op::append ? rules::append_c1 : rules::store_c1,
                  Text().put(value.shape).data());
    return success();
  }

  LogicalResult checkCustom(const Node &node) {
    if (!inRange(node.attributes.index, graph.functions))
      return report(node.scope, "node: unknown function; expected one of the graph",
                    llvm::Twine(node.attributes.index));
    const CustomFunction &function = graph.functions[node.attributes.index];
    auto typeOf = [&](int number) { return TensorType{graph.nodes[number].element, graph.nodes[number].shape}; };
    if (!llvm::equal(llvm::map_range(node.operands, typeOf), function.operands))
      return fail(node.scope, rules::custom_c3, function.name);
    for (const TensorType &result : function.results)
      if (failed(
              checkElement(node.scope, "custom: unknown element type; expected one of the language", result.element)) ||
          failed(checkShape(node.scope, result.shape)) || failed(addSymbols(node.scope, result.shape, false)))
        return failure();
    return function.has_valid_workspace() ? success()
                                          : fail(node.scope, rules::custom_c4, Text().put(function.workspace).data());
  }

  LogicalResult checkStack(const Node &node, std::vector<int> &stacks) {
    if (!inRange(node.attributes.index, graph.regions))
      return report(node.scope, "stack: no body; expected a region of the graph", llvm::Twine(node.attributes.index));
    const Region &body = graph.regions[node.attributes.index];
    if (!inRange(body.scope, graph.scopes) || graph.scopes[body.scope].copies != body.count)
      return fail(node.scope, rules::stack_c2, llvm::Twine(body.count));
    const auto carried = static_cast<std::size_t>(std::max(node.attributes.states, 0));
    if (carried < 1 || carried > node.operands.size() || body.arguments.size() != node.operands.size() ||
        body.results.size() < carried)
      return fail(body.scope, rules::stack_c1,
                  llvm::Twine(body.arguments.size()) + " arguments and " + llvm::Twine(body.results.size()) +
                      " results");
    for (int sequence : llvm::drop_begin(node.operands, carried))
      if (const std::vector<Dim> &shape = graph.nodes[sequence].shape; shape.empty() || shape[0] != Dim(body.count))
        return fail(body.scope, rules::stack_c6, Text().put(shape).data());
    stacks.push_back(body.scope);
    LogicalResult result = checkRegion(node.attributes.index, body.scope, stacks);
    stacks.pop_back();
    return result;
  }

  LogicalResult checkScan(const Node &node, std::vector<int> &stacks) {
    if (!inRange(node.attributes.index, graph.regions))
      return report(node.scope, "scan: no body; expected a region of the graph", llvm::Twine(node.attributes.index));
    const Region &body = graph.regions[node.attributes.index];
    int states = node.attributes.states;
    if (states < 0 || states >= static_cast<int>(node.operands.size()))
      return report(node.scope, "scan: no sequence; expected one after its states",
                    llvm::Twine(states) + " of " + llvm::Twine(node.operands.size()) + " operands");
    if (body.arguments.size() != node.operands.size() || body.results.size() < std::max<std::size_t>(states, 1))
      return fail(node.scope, rules::scan_c2,
                  llvm::Twine(body.arguments.size()) + " arguments and " + llvm::Twine(body.results.size()) +
                      " results");
    ++scans;
    LogicalResult result = checkRegion(node.attributes.index, node.scope, stacks);
    --scans;
    return result;
  }

  const Graph &graph;
  mlir::MLIRContext *context;
  std::vector<Symbol> &symbols;
  std::vector<bool> visible; // per node: computed, and visible at the current position
  std::vector<int> entered;  // per region
  std::string entryName = "forward";
  int scans = 0; // number of enclosing scans
  bool scopesNest = false;
};

} // namespace

LogicalResult checkGraph(const Graph &graph, mlir::MLIRContext *context, std::vector<Symbol> &symbols) {
  return Checker(graph, context, symbols).run();
}

} // namespace kiln
