// SPDX-License-Identifier: Apache-2.0
//
// 1. Check that the graph is well formed and collect its named extents.
// 2. Create a function for each entry: the named extents as index arguments, then the inputs, then the nodes in their
// order.
// 3. Record what the passes need to know of training, batched entries and storage formats.
// 4. Verify: violated rules of single ops are reported here, with their scopes.
#include "compiler/frontend/Import.h"

#include "compiler/dialect/Check.h"
#include "compiler/dialect/gradients/GradientBuilder.h"
#include "compiler/frontend/CheckGraph.h"
#include "compiler/frontend/Dropout.h"
#include "compiler/frontend/ImportNode.h"
#include "compiler/frontend/ImportTraining.h"
#include "kiln/batch.h"
#include "kiln/training.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"

namespace kiln {

using llvm::SmallVector;
using mlir::failed;
using mlir::failure;
using mlir::LogicalResult;
using mlir::success;

namespace {

class Importer {
public:
  Importer(const Graph &graph, mlir::ModuleOp module, llvm::ArrayRef<mlir::kiln::SymbolAttr> symbols)
      : graph(graph), module(module), symbols(symbols), builder(module.getContext()), values(graph.nodes.size()) {}

  LogicalResult importEntry(const Entry &entry) {
    if (module.lookupSymbol(entry.name))
      return mlir::emitError(module.getLoc())
             << mlir::kiln::withValues(rules::model_c5, llvm::Twine(entry.name) + " twice");
    entryName = entry.name;
    const Region &region = graph.regions[entry.region];
    auto tensors = [&](const std::vector<int> &nodes) {
      return llvm::map_to_vector(nodes, [&](int node) -> mlir::Type { return tensorType(graph.nodes[node]); });
    };
    SmallVector<mlir::Type> inputs(symbols.size(), builder.getIndexType()), results = tensors(region.results);
    llvm::append_range(inputs, tensors(region.arguments));

    builder.setInsertionPointToEnd(module.getBody());
    auto function =
        mlir::func::FuncOp::create(builder, locationOf(-1), entry.name, builder.getFunctionType(inputs, results));
    function->setAttr(mlir::kiln::entryAttrName, builder.getUnitAttr());
    for (auto [i, symbol] : llvm::enumerate(symbols))
      function.setArgAttr(i, mlir::kiln::symbolAttrName, builder.getStringAttr(symbol.getName()));
    for (auto [i, name] : llvm::enumerate(entry.input_names))
      function.setArgAttr(symbols.size() + i, mlir::kiln::nameAttrName, builder.getStringAttr(name));
    for (auto [i, name] : llvm::enumerate(entry.output_names))
      function.setResultAttr(i, mlir::kiln::nameAttrName, builder.getStringAttr(name));

    mlir::Block *body = function.addEntryBlock();
    builder.setInsertionPointToEnd(body);
    isTraining = entry.training.update != Update::none;
    frozen = entry.training.frozen;
    importTraining(function, graph, entry);
    if (entry.sequences > 0)
      function->setAttr(mlir::kiln::batchedAttrName, builder.getUnitAttr());
    dropout.begin(function);
    if (failed(importRegion(region, body->getArguments().slice(symbols.size(), region.arguments.size()))))
      return failure();
    mlir::func::ReturnOp::create(builder, locationOf(-1), valuesOf(region.results));
    return success();
  }

private:
  mlir::Location locationOf(int scope) { return scopeLocation(graph, scope, entryName, builder.getContext()); }

  SmallVector<mlir::Value> valuesOf(const std::vector<int> &nodes) {
    return llvm::map_to_vector(nodes, [&](int node) { return values[node]; });
  }

  mlir::RankedTensorType tensorType(ElementType element, llvm::ArrayRef<Dim> shape) {
    auto extents = llvm::map_to_vector(
        shape, [&](const Dim &dim) { return mlir::kiln::fromDim(dim, symbols, builder.getContext()); });
    return mlir::kiln::getTensorType(extents, mlir::kiln::fromElementType(element, builder.getContext()),
                                     symbols.size());
  }
  mlir::RankedTensorType tensorType(const Node &node) { return tensorType(node.element, node.shape); }

  LogicalResult importRegion(const Region &region, mlir::ValueRange arguments) {
    for (auto [node, argument] : llvm::zip_equal(region.arguments, arguments))
      values[node] = argument;
    for (int number : region.nodes) {
      if (graph.nodes[number].op == Op::store)
        continue;
      auto value = importValue(graph.nodes[number]);
      if (failed(value))
        return failure();
      values[number] = *value;
    }
    // The stores come after everything that reads the states, and after all that is computed from what was read.
    SmallVector<std::pair<const Node *, mlir::Value>> stores;
    for (int number : region.nodes)
      if (const Node &node = graph.nodes[number]; node.op == Op::store)
        stores.emplace_back(&node, flushed(values[node.operands[0]], locationOf(node.scope)));
    for (const auto &[node, value] : stores) {
      const StateTensor &state = graph.states[node->attributes.index];
      mlir::kiln::StoreOp::create(builder, locationOf(node->scope), value, graph.name(state), graph.copies(state.scope),
                                  state.shape[0]);
    }
    return success();
  }

  /// Returns the value with magnitudes that states do not hold replaced by 0. In f16 only 0 is so small.
  mlir::Value flushed(mlir::Value value, mlir::Location location) {
    const mlir::Type element = mlir::kiln::rankedType(value).getElementType();
    if (!(element.isF32() || element.isBF16()) || isMoved(value))
      return value;
    mlir::kiln::GradientBuilder b(builder, location);
    mlir::Value isSmall =
        b.create<mlir::kiln::LessOp>(b.create<mlir::kiln::AbsOp>(value), b.number(value, least_state_magnitude));
    return b.where(isSmall, b.number(value, 0), value);
  }

  /// Whether the value only moves inputs, former states and constants, so that nothing decays from call to call.
  static bool isMoved(mlir::Value value) {
    mlir::Operation *op = value.getDefiningOp();
    if (!op)
      return llvm::isa<mlir::func::FuncOp>(value.getParentBlock()->getParentOp());
    if (llvm::isa<mlir::kiln::StateOp, mlir::kiln::ConstantOp>(op))
      return true;
    return (llvm::isa<mlir::kiln::ReshapeOp>(op) || mlir::kiln::hasRole(op, mlir::kiln::KernelRole::Movement)) &&
           llvm::all_of(op->getOperands(), isMoved);
  }

  mlir::FailureOr<mlir::Value> importValue(const Node &node) {
    SmallVector<mlir::Value> operands = valuesOf(node.operands);
    mlir::RankedTensorType type = tensorType(node);
    switch (node.op) {
    case Op::parameter: {
      const Parameter &parameter = graph.parameters[node.attributes.index];
      std::string name = graph.name(parameter);
      return mlir::kiln::ParameterOp::create(builder, locationOf(parameter.scope), type, llvm::StringRef(name),
                                             graph.copies(parameter.scope), parameter.is_variable)
          .getResult();
    }
    case Op::dropout:
    case Op::stop_gradient:
      return importIdentity(node, operands, type);
    case Op::running_average:
      return importRunningAverage(node, operands, type);
    case Op::custom:
      return importCustom(node, operands);
    case Op::stack:
      return importStack(node, operands);
    case Op::scan:
      return importScan(node, operands);
    case Op::result:
      return importResult(node, operands[0], type);
    case Op::state:
    case Op::append: {
      const StateTensor &state = graph.states[node.attributes.index];
      std::string name = graph.name(state);
      if (node.op == Op::state)
        return mlir::kiln::StateOp::create(builder, locationOf(node.scope), type, name, graph.copies(state.scope),
                                           state.shape[0])
            .getResult();
      return mlir::kiln::AppendOp::create(builder, locationOf(node.scope), type, operands[0], name,
                                          graph.copies(state.scope), state.shape[0])
          .getResult();
    }
    default:
      return importNode(node, locationOf(node.scope), operands, type, builder);
    }
  }

  mlir::FailureOr<mlir::Value> importIdentity(const Node &node, llvm::ArrayRef<mlir::Value> operands,
                                              mlir::RankedTensorType type) {
    mlir::Location location = locationOf(node.scope);
    if (operands.size() != 1 || operands[0].getType() != type)
      return mlir::kiln::Check(location, operands)
          .report(std::string(name_of(node.op)) + ": wrong operands; expected one of the result's type",
                  llvm::Twine(operands.size()) + " operands");
    if (!isTraining)
      return operands[0];
    if (node.op == Op::dropout)
      return dropout.import(operands[0], node.attributes.probability, location);
    return mlir::kiln::StopGradientOp::create(builder, location, operands[0]).getResult();
  }

  mlir::FailureOr<mlir::Value> importRunningAverage(const Node &node, llvm::ArrayRef<mlir::Value> operands,
                                                    mlir::RankedTensorType type) {
    mlir::Location location = locationOf(node.scope);
    auto kept = operands.empty() ? nullptr : operands[0].getDefiningOp<mlir::kiln::ParameterOp>();
    if (!kept)
      return mlir::kiln::Check(location, operands).fail(rules::running_average_c1, "another value");
    if (operands.size() != 3 || llvm::any_of(operands, [&](mlir::Value operand) { return operand.getType() != type; }))
      return mlir::kiln::Check(location, operands)
          .fail(rules::running_average_c2, llvm::Twine(operands.size()) + " operands");
    const int parameter = graph.nodes[node.operands[0]].attributes.index;
    if (!isTraining || detail::matches_one(frozen, graph.written(graph.parameters[parameter]).c_str()))
      return operands[0];
    return mlir::kiln::RunningAverageOp::create(builder, location, operands[0], operands[1], operands[2]).getResult();
  }

  /// Returns the type of a node's values stacked along a new first axis.
  mlir::RankedTensorType stackedType(mlir::AffineExpr length, const Node &node) {
    mlir::RankedTensorType type = tensorType(node);
    SmallVector<mlir::AffineExpr> extents{length};
    llvm::append_range(extents, mlir::kiln::getExtents(type));
    return mlir::kiln::getTensorType(extents, type.getElementType(), symbols.size());
  }

  /// A body that reads slices or has dropout needs the layer's number: then the loop is a scan over the layers.
  mlir::FailureOr<mlir::Value> importStack(const Node &node, llvm::ArrayRef<mlir::Value> operands) {
    const Region &body = graph.regions[node.attributes.index];
    SmallVector<mlir::Value> inits(operands.take_front(node.attributes.states)),
        sequences(operands.drop_front(inits.size()));
    SmallVector<mlir::Type> stacked;
    for (int output : llvm::drop_begin(body.results, inits.size()))
      stacked.push_back(
          stackedType(mlir::getAffineConstantExpr(body.count, builder.getContext()), graph.nodes[output]));
    mlir::Location location = locationOf(body.scope);
    if (isTraining && has_dropout(graph, node.attributes.index))
      sequences.push_back(dropout.numbers(body.count, location));
    if (!sequences.empty()) {
      auto scan = mlir::kiln::ScanOp::create(builder, location, inits, sequences, stacked, /*reverse=*/false,
                                             /*layers=*/true);
      return importBody(scan, body, operands.size());
    }
    return importBody(mlir::kiln::RepeatOp::create(builder, location, body.count, inits, stacked), body, inits.size());
  }

  /// Any result represents the loop: Op::result selects the right one. A body with dropout has the number of the
  /// iteration as an additional argument.
  mlir::FailureOr<mlir::Value> importBody(mlir::kiln::LoopInterface loop, const Region &body, size_t arguments) {
    mlir::OpBuilder::InsertionGuard guard(builder);
    mlir::Block &block = loop->getRegion(0).front();
    builder.setInsertionPointToEnd(&block);
    DropoutImporter::Iteration here(dropout, loop, block.getArguments().drop_front(arguments));
    if (failed(importRegion(body, block.getArguments().take_front(arguments))))
      return failure();
    mlir::kiln::YieldOp::create(builder, loop.getLoc(), valuesOf(body.results));
    return loop->getResult(0);
  }

  mlir::FailureOr<mlir::Value> importScan(const Node &node, llvm::ArrayRef<mlir::Value> operands) {
    const Region &body = graph.regions[node.attributes.index];
    mlir::Location location = locationOf(node.scope);
    SmallVector<mlir::Value> inits(operands.take_front(node.attributes.states)),
        sequences(operands.drop_front(inits.size()));
    mlir::kiln::Check check(location, operands);
    for (mlir::Value sequence : sequences)
      if (mlir::cast<mlir::RankedTensorType>(sequence.getType()).getRank() == 0)
        return check.fail(rules::scan_c1, check.text(mlir::cast<mlir::RankedTensorType>(sequence.getType())));
    auto first = mlir::cast<mlir::RankedTensorType>(sequences.front().getType());
    SmallVector<mlir::Type> stacked;
    for (int output : llvm::drop_begin(body.results, inits.size()))
      stacked.push_back(stackedType(mlir::kiln::getExtents(first).front(), graph.nodes[output]));
    if (isTraining && has_dropout(graph, node.attributes.index))
      sequences.push_back(mlir::kiln::PositionsOp::create(builder, location, sequences.front(), 0));
    auto scan = mlir::kiln::ScanOp::create(builder, location, inits, sequences, stacked, node.attributes.reverse);
    scan.setUntil(node.attributes.until && !isTraining);
    return importBody(scan, body, operands.size());
  }

  /// Any result represents the call: Op::result selects the right one. The workspace is the last result.
  mlir::FailureOr<mlir::Value> importCustom(const Node &node, llvm::ArrayRef<mlir::Value> operands) {
    const CustomFunction &function = graph.functions[node.attributes.index];
    SmallVector<mlir::Type> types;
    for (const TensorType &result : function.results)
      types.push_back(tensorType(result.element, result.shape));
    const bool hasWorkspace = function.workspace != Dim(0);
    if (hasWorkspace)
      types.push_back(tensorType(ElementType::i8, function.workspace));
    auto derivative = function.has_derivative() ? builder.getStringAttr(function.derivative) : mlir::StringAttr();
    return mlir::kiln::CustomOp::create(builder, locationOf(node.scope), types, function.name, operands, derivative,
                                        hasWorkspace)
        ->getResult(0);
  }

  mlir::FailureOr<mlir::Value> importResult(const Node &node, mlir::Value scan, mlir::RankedTensorType type) {
    mlir::ValueRange results = scan.getDefiningOp()->getResults();
    mlir::kiln::Check check(locationOf(node.scope), results);
    if (node.attributes.index < 0 || node.attributes.index >= static_cast<int>(results.size()))
      return check.report("result: number out of range", llvm::Twine(node.attributes.index),
                          "below " + llvm::Twine(results.size()));
    mlir::Value result = results[node.attributes.index];
    if (result.getType() != type)
      return check.report("result: type differs from that of the loop or the function", check.text(type),
                          check.text(mlir::cast<mlir::RankedTensorType>(result.getType())));
    return result;
  }

  const Graph &graph;
  mlir::ModuleOp module;
  llvm::ArrayRef<mlir::kiln::SymbolAttr> symbols;
  mlir::OpBuilder builder;
  std::vector<mlir::Value> values; // per node
  std::string entryName;
  bool isTraining = false;
  Names frozen; // patterns of the parameters that the entry does not train
  DropoutImporter dropout{builder};
};

/// Adds the symbols of batched entries, and returns their positions; nullopt without such entries.
std::optional<mlir::kiln::BatchSymbols> addBatchSymbols(const Graph &graph, std::vector<Symbol> &symbols) {
  mlir::kiln::BatchSymbols positions;
  const BatchExtents extents = batch_extents(graph);
  if (!extents.sequences.present())
    return std::nullopt;
  if (extents.own.present())
    positions.own = llvm::find(symbols, extents.own) - symbols.begin();
  positions.count = symbols.size();
  symbols.push_back(extents.sequences);
  if (extents.rows.present()) {
    positions.rows = symbols.size();
    symbols.push_back(extents.rows);
  }
  return positions;
}

/// Records the storage formats that the spec states, if there are any.
void recordStorages(const Graph &graph, mlir::ModuleOp module) {
  mlir::NamedAttrList stated;
  for (const Parameter &parameter : graph.parameters)
    if (parameter.storage.is_stated)
      stated.set(graph.name(parameter), mlir::StringAttr::get(module.getContext(), name_of(parameter.storage)));
  if (!stated.empty())
    module->setAttr(mlir::kiln::statedStorageAttrName, stated.getDictionary(module.getContext()));
}

} // namespace

mlir::OwningOpRef<mlir::ModuleOp> importGraph(const Graph &graph, mlir::MLIRContext *context,
                                              llvm::StringRef modelName) {
  context->loadDialect<mlir::func::FuncDialect, mlir::kiln::KilnDialect>();
  std::vector<Symbol> used;
  if (failed(checkGraph(graph, context, used)))
    return {};
  const std::optional<mlir::kiln::BatchSymbols> batch = addBatchSymbols(graph, used);
  SmallVector<mlir::kiln::SymbolAttr> symbols;
  for (const Symbol &symbol : used)
    symbols.push_back(mlir::kiln::SymbolAttr::get(context, symbol.name, symbol.min, symbol.max, symbol.least));

  auto location = mlir::NameLoc::get(mlir::StringAttr::get(context, modelName));
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(location, modelName);
  (*module)->setAttr(mlir::kiln::symbolsAttrName,
                     mlir::ArrayAttr::get(context, SmallVector<mlir::Attribute>(symbols.begin(), symbols.end())));
  if (batch)
    batch->write(*module);
  recordStorages(graph, *module);
  Importer importer(graph, *module, symbols);
  for (const Entry &entry : graph.entries)
    if (failed(importer.importEntry(entry)))
      return {};
  if (failed(mlir::verify(*module)))
    return {};
  return module;
}

} // namespace kiln
