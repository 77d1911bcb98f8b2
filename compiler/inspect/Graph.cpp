// SPDX-License-Identifier: Apache-2.0
//
// Loops are not nodes. The inputs of a body's first iteration are edges from outside, and the results of a loop are the
// values that the last iteration yields. Parameters and constants are properties of the ops that read them.
#include "compiler/inspect/Graph.h"

#include "compiler/dialect/Check.h"
#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
#include "compiler/library/Interface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace kiln {

using namespace mlir;

namespace {

class GraphBuilder {
public:
  explicit GraphBuilder(func::FuncOp entry) : entry(entry), symbols(mlir::kiln::getSymbols(entry)) {}

  InspectedGraph build() {
    for (BlockArgument argument : entry.getArguments())
      if (isa<RankedTensorType>(argument.getType())) {
        edges[argument] = {int64_t(graph.nodes.size()), "", typeOf(argument)};
        addNode("input", nameOf(entry.getArgAttr(argument.getArgNumber(), mlir::kiln::nameAttrName)),
                {typeOf(argument)});
      }
    addBlock(entry.getBody().front());
    Operation *end = entry.getBody().front().getTerminator();
    for (OpOperand &operand : end->getOpOperands()) {
      GraphNode &node =
          addNode("output", nameOf(entry.getResultAttr(operand.getOperandNumber(), mlir::kiln::nameAttrName)), {});
      node.operands.push_back(edges.lookup(operand.get()));
    }
    return std::move(graph);
  }

private:
  static std::string nameOf(Attribute name) {
    auto text = dyn_cast_or_null<StringAttr>(name);
    return text ? text.getValue().str() : "";
  }
  std::string typeOf(Value value) const { return describeTensor(cast<RankedTensorType>(value.getType()), symbols); }

  /// Adds an input or output. It belongs to no layer; its name is an attribute.
  GraphNode &addNode(StringRef op, std::string name, std::vector<std::string> results) {
    GraphNode &node = graph.nodes.emplace_back();
    node.op = op.str();
    node.attributes.emplace_back("name", std::move(name));
    node.results = std::move(results);
    return node;
  }

  void addBlock(Block &block) {
    for (Operation &op : block.without_terminator()) {
      if (auto parameter = dyn_cast<mlir::kiln::ParameterOp>(op))
        edges[parameter] = {-1, llvm::join(parameter.getSources().getAsValueRange<StringAttr>(), ", "),
                            typeOf(parameter)};
      else if (auto constant = dyn_cast<mlir::kiln::ConstantOp>(op))
        edges[constant] = {-1, "constant " + print(constant.getValueAttr()), typeOf(constant)};
      else if (auto loop = dyn_cast<mlir::kiln::LoopInterface>(op))
        addLoop(loop);
      else
        addOp(op);
    }
  }

  void addLoop(mlir::kiln::LoopInterface loop) {
    GraphLoop added{loop->getName().stripDialect().str(), timesOf(loop), int64_t(graph.nodes.size()), 0};
    Block &body = loop->getRegion(0).front();
    for (auto [argument, operand] : llvm::zip(body.getArguments(), loop->getOperands())) {
      GraphEdge edge = edges.lookup(operand);
      edge.type = typeOf(argument);
      edges[argument] = edge;
    }
    addBlock(body);
    for (auto [result, yielded] : llvm::zip(loop->getResults(), loop.getYield()->getOperands())) {
      GraphEdge edge = edges.lookup(yielded);
      edge.type = typeOf(result);
      edges[result] = edge;
    }
    added.last = int64_t(graph.nodes.size()) - 1;
    if (added.last >= added.first)
      graph.loops.push_back(std::move(added));
  }

  std::string timesOf(mlir::kiln::LoopInterface loop) const {
    if (std::optional<Dim> dim = mlir::kiln::toDim(loop.getTripCount(), symbols))
      return toString(*dim);
    return mlir::kiln::describeExtent(loop.getTripCount(), symbols);
  }

  void addOp(Operation &op) {
    const int64_t number = int64_t(graph.nodes.size());
    GraphNode &node = graph.nodes.emplace_back();
    node.op = op.getName().stripDialect().str();
    const StringRef scope = mlir::kiln::getScope(op.getLoc());
    if (scope != entry.getName()) // an op outside of all layers has the entry's name as its scope
      node.layer = written_name(scope.str());
    for (NamedAttribute attribute : op.getAttrDictionary())
      if (!attribute.getName().getValue().contains("egment"))
        node.attributes.emplace_back(attribute.getName().str(), print(attribute.getValue()));
    for (Value operand : op.getOperands())
      if (isa<RankedTensorType>(operand.getType()))
        node.operands.push_back(edges.lookup(operand));
    for (Value result : op.getResults())
      if (isa<RankedTensorType>(result.getType())) {
        edges[result] = {number, "", typeOf(result)};
        node.results.push_back(typeOf(result));
      }
  }

  /// Returns the attribute as MLIR prints it, without types: "out_in" for #kiln<weight_order out_in>. Large constants
  /// are truncated.
  static std::string print(Attribute attribute) {
    std::string text;
    llvm::raw_string_ostream out(text);
    attribute.print(out, /*elideType=*/true);
    StringRef value = text;
    if (value.consume_front("#kiln<") && value.consume_back(">"))
      return value.split(' ').second.str();
    constexpr size_t longest = 80;
    return text.size() <= longest ? text : text.substr(0, longest) + "...";
  }

  func::FuncOp entry;
  SmallVector<mlir::kiln::SymbolAttr> symbols;
  InspectedGraph graph;
  llvm::DenseMap<Value, GraphEdge> edges;
};

} // namespace

void addGraphs(Inspection &inspection, ModuleOp module) {
  for (const InspectedEntry &entry : inspection.entries) {
    auto function = module.lookupSymbol<func::FuncOp>(entry.name);
    inspection.graphs.push_back(function ? GraphBuilder(function).build() : InspectedGraph());
  }
}

} // namespace kiln
