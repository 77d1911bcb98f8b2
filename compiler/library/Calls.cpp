// SPDX-License-Identifier: Apache-2.0
#include "compiler/library/Calls.h"

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
#include "llvm/ADT/MapVector.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>

namespace kiln {

using namespace mlir;

//===- Scenarios ---------------------------------------------------------===//

llvm::Expected<std::vector<Scenario>> makeScenarios(ModuleOp module, const GivenExtents &given) {
  Scenario most, middle;
  std::vector<std::string> names;
  for (mlir::kiln::SymbolAttr symbol : mlir::kiln::getSymbols(module)) {
    names.push_back(symbol.getName().str());
    most[names.back()] = symbol.getMax();
    middle[names.back()] = std::max<int64_t>(symbol.getMin(), symbol.getMax() / 2);
    auto chosen = given.find(names.back());
    for (int64_t value : chosen == given.end() ? std::vector<int64_t>() : chosen->second)
      if (value < symbol.getMin() || value > symbol.getMax())
        return llvm::createStringError(
            fmt::format("dimension \"{}\": size is out of range; expected one in [{}, {}], got {}", names.back(),
                        symbol.getMin(), symbol.getMax(), value));
  }
  std::vector<Scenario> scenarios{most, middle};
  for (const auto &[name, values] : given) {
    if (!llvm::is_contained(names, name))
      return llvm::createStringError(fmt::format("the model has no dimension \"{}\"; it has: {}", name,
                                                 names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
    std::vector<Scenario> combined;
    for (const Scenario &scenario : scenarios)
      for (int64_t value : values) {
        combined.push_back(scenario);
        combined.back()[name] = value;
      }
    scenarios = std::move(combined);
  }
  std::vector<Scenario> distinct; // with all extents given, the halved scenario equals the first one
  for (Scenario &scenario : scenarios)
    if (!llvm::is_contained(distinct, scenario))
      distinct.push_back(std::move(scenario));
  return distinct;
}

//===- Kernels -----------------------------------------------------------===//

/// Evaluates index arithmetic in an entry whose index arguments have the values `symbols`.
static int64_t evaluate(Value value, ArrayRef<int64_t> symbols) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return symbols[argument.getArgNumber()];
  Operation *op = value.getDefiningOp();
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands())
    operands.push_back(IntegerAttr::get(operand.getType(), evaluate(operand, symbols)));
  SmallVector<OpFoldResult> results;
  LogicalResult folded = op->fold(operands, results);
  (void)folded;
  assert(succeeded(folded) && results.size() == 1 && "index arithmetic of constants folds");
  if (auto operand = dyn_cast<Value>(results[0])) // a multiplication by one folds to its operand
    return evaluate(operand, symbols);
  return cast<IntegerAttr>(cast<Attribute>(results[0])).getInt();
}

std::vector<int64_t> evaluateExtents(mlir::kiln::CallOp call, ArrayRef<int64_t> symbols) {
  std::vector<int64_t> extents;
  for (Value extent : call.getExtents())
    extents.push_back(evaluate(extent, symbols));
  return extents;
}

double countCalls(Operation *op, ArrayRef<int64_t> symbols) {
  auto points = llvm::map_to_vector(symbols, [](int64_t value) { return mlir::kiln::Interval{value, value}; });
  double calls = 1;
  for (auto loop = op->getParentOfType<mlir::kiln::LoopInterface>(); loop;
       loop = loop->getParentOfType<mlir::kiln::LoopInterface>())
    calls *= static_cast<double>(mlir::kiln::getBounds(loop.getTripCount(), points)->min);
  return calls;
}

static bool isWeight(Value value) {
  while (auto view = value.getDefiningOp<mlir::kiln::ReshapeOp>())
    value = view->getOperand(0);
  return value.getDefiningOp<mlir::kiln::ParameterOp>() || value.getDefiningOp<mlir::kiln::ConstantOp>();
}

/// Whether the call reads the same weights again in the next iteration of a time loop. The layers of a stack read
/// different weights.
static bool isStep(mlir::kiln::CallOp call) {
  auto loop = call->getParentOfType<mlir::kiln::LoopInterface>();
  return loop && isa<mlir::kiln::ScanOp>(loop.getOperation()) && !loop.isOverLayers();
}

std::vector<KernelUse> collectKernels(ModuleOp module, const ShapeVariants &forms,
                                      const std::vector<Scenario> &scenarios) {
  llvm::MapVector<Operation *, KernelUse> uses;
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr("kiln.kernel"))
      uses[function] = {function, {}, std::vector<std::vector<Workload>>(scenarios.size())};
  SmallVector<mlir::kiln::SymbolAttr> symbols = mlir::kiln::getSymbols(module);
  module.walk([&](mlir::kiln::CallOp call) {
    auto callee = uses.find(module.lookupSymbol(call.getCallee()));
    if (callee == uses.end())
      return;
    std::vector<bool> fresh;
    for (Value argument : call.getArguments())
      fresh.push_back(isWeight(argument) && !isStep(call));
    auto meet = [&](StringRef function) {
      KernelUse &use = uses[module.lookupSymbol(function)];
      use.isStep = isStep(call) && (use.isStep || use.isFresh.empty());
      use.isFresh.resize(fresh.size());
      std::transform(fresh.begin(), fresh.end(), use.isFresh.begin(), use.isFresh.begin(), std::logical_or<>());
    };
    meet(call.getCallee());
    if (auto found = forms.find(call.getCallee()); found != forms.end())
      for (const KernelVariant &form : found->second)
        meet(form.function);
    for (auto [number, scenario] : llvm::enumerate(scenarios)) {
      SmallVector<int64_t> values;
      for (mlir::kiln::SymbolAttr symbol : symbols)
        values.push_back(scenario.at(symbol.getName().str()));
      const std::vector<int64_t> extents = evaluateExtents(call, values);
      KernelUse &use = uses[module.lookupSymbol(chooseVariant(forms, call.getCallee(), extents))];
      std::vector<Workload> &workloads = use.scenarios[number];
      auto same = llvm::find_if(workloads, [&](const Workload &workload) { return workload.extents == extents; });
      if (same == workloads.end())
        same = workloads.insert(workloads.end(), {extents, 0});
      same->calls += countCalls(call, values);
    }
  });
  std::vector<KernelUse> result;
  for (auto &[function, use] : uses)
    if (!use.isFresh.empty() || !use.scenarios.front().empty())
      result.push_back(std::move(use));
  return result;
}

} // namespace kiln
