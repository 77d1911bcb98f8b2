// SPDX-License-Identifier: Apache-2.0
#include "compiler/library/Execution.h"

#include "compiler/dialect/Check.h"
#include "compiler/dialect/Extents.h"
#include "compiler/library/Calls.h"
#include "compiler/library/Interface.h"
#include "compiler/transforms/RowsInPlace.h"

#include <map>

namespace kiln {

using namespace mlir;

std::string describeTensor(RankedTensorType type, ArrayRef<mlir::kiln::SymbolAttr> symbols) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << type.getElementType() << '[';
  llvm::interleaveComma(mlir::kiln::getExtents(type), out, [&](AffineExpr extent) {
    if (std::optional<Dim> dim = mlir::kiln::toDim(extent, symbols))
      out << toString(*dim);
    else
      out << extent;
  });
  out << ']';
  return text;
}

static std::vector<std::string> describeTensors(ValueRange values, ArrayRef<mlir::kiln::SymbolAttr> symbols) {
  std::vector<std::string> texts;
  for (Value value : values)
    if (auto type = dyn_cast<RankedTensorType>(value.getType()))
      texts.push_back(describeTensor(type, symbols));
  return texts;
}

/// Returns the extents at `op`: the given ones, or the largest. In a loop over sequences, a sequence has its share of
/// the rows.
static SmallVector<int64_t> extentsAt(Operation *op, ArrayRef<mlir::kiln::SymbolAttr> symbols,
                                      const std::map<std::string, int64_t> &given) {
  auto values = llvm::map_to_vector(symbols, [&](mlir::kiln::SymbolAttr symbol) {
    auto value = given.find(symbol.getName().str());
    return value == given.end() ? int64_t(symbol.getMax()) : value->second;
  });
  auto sequences = op->getParentOfType<mlir::kiln::EachSequenceOp>();
  if (!sequences)
    return values;
  if (auto [count, rows, own] = sequences.getBatchSymbols(); rows >= 0)
    values[own] = std::max<int64_t>(symbols[own].getMin(), values[rows] / values[count]);
  return values;
}

namespace {

class StepLister {
public:
  StepLister(ModuleOp module, const ShapeVariants &forms, const std::map<std::string, int64_t> &given)
      : module(module), forms(forms), symbols(mlir::kiln::getSymbols(module)), given(given) {}

  ExecutionStep describe(Operation *op);

private:
  /// Measuring masked attention takes time in proportion to the number of scores. The result is cached, as equal layers
  /// have equal work.
  Work workOf(const std::string &kernel, const std::vector<int64_t> &extents) {
    auto [work, isNew] = known.try_emplace({kernel, extents});
    if (isNew)
      work->second = measureWork(module.lookupSymbol<func::FuncOp>(kernel), extents);
    return work->second;
  }

  ModuleOp module;
  const ShapeVariants &forms;
  SmallVector<mlir::kiln::SymbolAttr> symbols;
  const std::map<std::string, int64_t> &given;
  std::map<std::pair<std::string, std::vector<int64_t>>, Work> known;
};

} // namespace

static double bytesOf(ValueRange values, ArrayRef<int64_t> extents) {
  double bytes = 0;
  for (Value value : values)
    if (auto type = dyn_cast<RankedTensorType>(value.getType()))
      bytes += double(storedBytes(type, extents));
  return bytes;
}

/// Whether the op is a collective over data-parallel replicas that might also be one over tensor-parallel ranks.
static bool isOverReplicas(Operation *op) {
  auto over = op->getAttrOfType<mlir::kiln::GroupAttr>("over");
  return isa<mlir::kiln::AllReduceOp, mlir::kiln::AllGatherOp, mlir::kiln::ReduceScatterOp>(op) && over &&
         over.getValue() == mlir::kiln::Group::Replicas;
}

ExecutionStep StepLister::describe(Operation *op) {
  ExecutionStep step;
  step.layer = written_name(mlir::kiln::getScope(op->getLoc()).str());
  const SmallVector<int64_t> values = extentsAt(op, symbols, given);
  if (auto loop = dyn_cast<mlir::kiln::LoopInterface>(op)) {
    step.kind = "loop";
    step.times = countCalls(&loop->getRegion(0).front().front(), values) / countCalls(op, values);
    if (loop.isOverLayers())
      step.bytes = bytesOf(op->getOperands().take_front(loop.getNumCarried()), values);
  } else if (isa<mlir::kiln::YieldOp>(op)) {
    step.kind = "end";
  } else if (auto call = dyn_cast<mlir::kiln::CallOp>(op)) {
    step.kind = "kernel";
    const std::vector<int64_t> extents = evaluateExtents(call, values);
    step.kernel = chooseVariant(forms, call.getCallee(), extents).str();
    step.operands = describeTensors(call.getArguments(), symbols);
    step.results = describeTensors(call.getResults(), symbols);
    step.times = countCalls(op, values);
    step.work = workOf(step.kernel, extents);
  } else {
    step.kind = op->getName().stripDialect().str();
    if (auto custom = dyn_cast<mlir::kiln::CustomOp>(op))
      step.kind += " " + custom.getFunction().str();
    if (isOverReplicas(op))
      step.kind += " over replicas";
    step.operands = describeTensors(op->getOperands(), symbols);
    step.times = countCalls(op, values);
    auto store = dyn_cast<mlir::kiln::StoreOp>(op);
    if (!store || !mlir::kiln::getSlide(store)) // a state that slides keeps its rows in place
      step.bytes = bytesOf(op->getOperands(), values);
  }
  return step;
}

std::vector<ExecutionStep> listSteps(func::FuncOp entry, const mlir::kiln::MemoryPlan &plan, const ShapeVariants &forms,
                                     const std::map<std::string, int64_t> &extents) {
  StepLister lister(entry->getParentOfType<ModuleOp>(), forms, extents);
  std::vector<ExecutionStep> steps;
  for (Operation *op : plan.getSteps())
    steps.push_back(lister.describe(op));
  return steps;
}

std::vector<PlannedBuffer> listBuffers(func::FuncOp entry, const mlir::kiln::MemoryPlan &plan) {
  const SmallVector<mlir::kiln::SymbolAttr> symbols = mlir::kiln::getSymbols(entry);
  std::vector<PlannedBuffer> buffers;
  for (const mlir::kiln::MemoryPlan::Buffer &buffer : plan.getBuffers()) {
    PlannedBuffer &planned = buffers.emplace_back(buffer.offset, buffer.bytes, buffer.first, buffer.last);
    for (Value value : buffer.values)
      planned.values.push_back(mlir::kiln::getWriter(value).str() + " " +
                               describeTensor(cast<RankedTensorType>(value.getType()), symbols));
  }
  return buffers;
}

} // namespace kiln
