// SPDX-License-Identifier: Apache-2.0
//
// 1. Determines which pipeline stages compute the same function: these share a role.
// 2. Finds the stack of layers of each entry, and rejects what pipeline stages do not support.
// 3. Copies the entry for each role: the stack's initial values are received, its results are sent.
// 4. Reduces the stack to the layers of the stage, and its sequences likewise.
// 5. Erases what the copy does not need for the values that it sends or returns.
#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
#include "compiler/dialect/StageRoles.h"
#include "compiler/dialect/Training.h"
#include "compiler/dialect/gradients/GradientBuilder.h"
#include "compiler/parallel/Passes.h"
#include "compiler/training/TrainProcess.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "runtime/src/core/model.h"
#include <set>

namespace mlir::kiln {

#define GEN_PASS_DEF_CUTSTAGES
#define GEN_PASS_DEF_MARKPROCESSES
#include "compiler/parallel/Passes.h.inc"

namespace {

/// Returns the loops over layers of an entry that are not nested in another loop.
SmallVector<LoopInterface> findStacks(func::FuncOp entry) {
  return llvm::filter_to_vector(entry.getOps<LoopInterface>(), [](LoopInterface loop) { return loop.isOverLayers(); });
}

int64_t getCount(LoopInterface stack) { return cast<AffineConstantExpr>(stack.getTripCount()).getValue(); }

/// Returns the first stage of each middle role: the stages between the first and the last with equal numbers of layers
/// in every stack share a role.
std::set<int64_t> findMiddles(ModuleOp module, int64_t stages) {
  std::set<int64_t> firsts;
  if (stages > 2)
    firsts.insert(1);
  for (func::FuncOp entry : module.getOps<func::FuncOp>())
    for (LoopInterface stack : findStacks(entry))
      if (const int64_t longer = kiln_first_longer_stage(getCount(stack), stages); longer > 0 && longer + 1 < stages)
        firsts.insert(longer);
  return firsts;
}

/// Returns the entry's only stack, or null after a diagnostic.
LoopInterface findStack(func::FuncOp entry, int64_t stages) {
  const SmallVector<LoopInterface> stacks = findStacks(entry);
  if (stacks.size() != 1) {
    entry.emitError() << "--stages " << stages << ": wrong number of stacks; expected one in each entry, got "
                      << stacks.size() << " in " << entry.getName();
    return {};
  }
  LoopInterface stack = stacks.front();
  if (const int64_t count = getCount(stack); count < stages) {
    stack.emitError() << "--stages " << stages << ": too few layers; expected a stack of as many or more, got " << count
                      << " in " << entry.getName();
    return {};
  }
  if (!stack.getStacked().empty()) {
    stack.emitError()
        << "--stages: several layers of the stack are read; expected only the last one, got all of them in "
        << entry.getName();
    return {};
  }
  return stack;
}

/// Checks that everything else that has a copy per layer, or state that lives between calls, is inside the stack.
LogicalResult checkLayers(func::FuncOp entry, LoopInterface stack) {
  WalkResult result = entry.walk([&](Operation *op) {
    auto loop = dyn_cast<LoopInterface>(op);
    if (loop && loop.isOverLayers() && op != stack) {
      op->emitError()
          << "--stages: another loop over layers; expected one stack without stacks in its layers, got one in "
          << entry.getName();
      return WalkResult::interrupt();
    }
    if (isa<StateOp, AppendOp, StoreOp>(op) && !stack->isProperAncestor(op)) {
      op->emitError() << "--stages: state outside of the layers; expected states of the stack's layers, got "
                      << op->getAttrOfType<StringAttr>("name").getValue() << " in " << entry.getName();
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// Selects the `count` layers of the stage from a sequence over all layers.
Value takeOwn(GradientBuilder &b, Value sequence, int64_t stages, int64_t count) {
  Type number = IntegerType::get(sequence.getContext(), 32);
  auto constant = [&](ArrayRef<int32_t> values) {
    auto type = RankedTensorType::get({static_cast<int64_t>(values.size())}, number);
    return b.create<ConstantOp>(DenseIntElementsAttr::get(type, values));
  };
  const int64_t layers = cast<RankedTensorType>(sequence.getType()).getDimSize(0);
  SmallVector<int32_t> firsts;
  for (int64_t stage = 0; stage < stages; ++stage)
    firsts.push_back(static_cast<int32_t>(kiln_first_layer(layers, stages, stage)));
  Value stage = b.createAs<RankOp>(RankedTensorType::get({}, number), Group::Stages);
  Value first = b.create<GatherOp>(constant(firsts), stage, 0);
  Value own = b.add(first, constant(llvm::to_vector(llvm::seq<int32_t>(0, static_cast<int32_t>(count)))));
  return b.create<GatherOp>(sequence, own, 0);
}

/// Reduces the stack to the `count` layers of one stage.
void shorten(LoopInterface stack, int64_t stages, int64_t count) {
  OpBuilder builder(stack);
  GradientBuilder b(builder, stack.getLoc());
  if (auto repeat = dyn_cast<RepeatOp>(stack.getOperation()))
    repeat.setCount(count);
  else
    for (OpOperand &sequence : cast<ScanOp>(stack.getOperation()).getSequencesMutable())
      sequence.set(takeOwn(b, sequence.get(), stages, count));
  stack->walk([&](Operation *op) {
    if (auto parameter = dyn_cast<ParameterOp>(op))
      parameter.setCopies(count);
    else if (auto state = dyn_cast<StateOp>(op))
      state.setCopies(count);
    else if (auto append = dyn_cast<AppendOp>(op))
      append.setCopies(count);
    else if (auto store = dyn_cast<StoreOp>(op))
      store.setCopies(count);
  });
}

void receiveInits(LoopInterface stack) {
  OpBuilder builder(stack);
  auto inits = MutableOperandRange(stack, 0, stack.getNumCarried());
  auto receive = ReceiveOp::create(builder, stack.getLoc(), TypeRange(inits.getAsOperandRange()), Way::Onward);
  inits.assign(receive.getValues());
}

/// Sends the stack's results and removes the results of the entry.
void sendResults(func::FuncOp function, LoopInterface stack) {
  Operation *end = function.getBody().front().getTerminator();
  OpBuilder builder(end);
  SendOp::create(builder, stack.getLoc(), stack->getResults(), Way::Onward);
  end->setOperands({});
  function.setType(builder.getFunctionType(function.getArgumentTypes(), {}));
  function.removeResAttrsAttr();
}

/// Erases dead ops. The reverse order visits users before producers.
void eraseUnused(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

void makeRole(func::FuncOp entry, const StageRole &role) {
  OpBuilder builder(entry);
  auto function = cast<func::FuncOp>(builder.clone(*entry));
  function.setName(getStageRoleName(entry.getName(), role.name));
  function->setAttr(roleAttrName, builder.getStringAttr(role.name));
  LoopInterface stack = findStacks(function).front();
  const int64_t layers = getCount(stack), stages = getNumRanks(entry, Group::Stages);
  function->setAttr(layersAttrName, builder.getI64IntegerAttr(layers));
  shorten(stack, stages, kiln_stage_layers(layers, stages, role.stage));
  if (role.name != "first")
    receiveInits(stack);
  if (role.name != "last")
    sendResults(function, stack);
  eraseUnused(function.getBody().front());
}

/// Records on a module the number of pipeline stages and their roles, which follow from the stacks of its entries.
void markStages(ModuleOp module, int64_t stages) {
  Builder builder(module.getContext());
  SmallVector<int64_t> firsts{0, stages - 1};
  llvm::append_range(firsts, findMiddles(module, stages));
  module->setAttr(stagesAttrName, builder.getI64IntegerAttr(stages));
  module->setAttr(rolesAttrName, builder.getDenseI64ArrayAttr(firsts));
}

/// Replaces an entry of a marked module by a function for each role: the initial values of the stack are received, its
/// results are sent, and the stack has the layers of one stage. Fails after a diagnostic.
LogicalResult cutStages(func::FuncOp entry) {
  auto module = entry->getParentOfType<ModuleOp>();
  LoopInterface stack = findStack(entry, getNumRanks(module, Group::Stages));
  if (!stack || failed(checkLayers(entry, stack)))
    return failure();
  for (const StageRole &role : getStageRoles(module)) {
    const std::string name = getStageRoleName(entry.getName(), role.name);
    if (module.lookupSymbol(name))
      return entry.emitError() << "--stages: name " << name
                               << " is taken; expected it for what they compute, got an entry";
    makeRole(entry, role);
  }
  entry.erase();
  return success();
}

/// Returns the names of the parameters that a function assigns.
std::set<std::string> findAssigned(func::FuncOp function) {
  std::set<std::string> names;
  function.walk([&](AssignOp assign) {
    Value parameter = assign.getParameter();
    for (StringRef name : parameter.getDefiningOp<ParameterOp>().getSources().getAsValueRange<StringAttr>())
      names.insert(name.str());
  });
  return names;
}

/// Checks that no stage has a weight that training changes only on other stages.
LogicalResult checkUpdates(ModuleOp module) {
  for (auto trained : module.getOps<func::FuncOp>())
    for (const std::string &name : findAssigned(trained))
      for (auto reader : module.getOps<func::FuncOp>()) {
        auto own = module.lookupSymbol<func::FuncOp>(getStageRoleName(getEntryName(trained), getStageRole(reader)));
        if (::kiln::findParameters(reader).contains(name) && !findAssigned(own).contains(name))
          return reader.emitError() << "--stages: weight is trained elsewhere; expected " << getEntryName(trained)
                                    << " to train it on each stage that has it, got " << name << ", which "
                                    << getEntryName(reader) << " reads on the " << getStageRole(reader) << " one";
      }
  return success();
}

struct CutStages : impl::CutStagesBase<CutStages> {
  using CutStagesBase::CutStagesBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!module->hasAttr(stagesAttrName))
      markStages(module, stages);
    for (func::FuncOp entry : llvm::to_vector(module.getOps<func::FuncOp>()))
      if (!entry->hasAttr(roleAttrName) && (!trainedOnly || entry->hasAttr(trainingAttrName)) &&
          failed(cutStages(entry)))
        return signalPassFailure();
    if (!trainedOnly && failed(checkUpdates(module)))
      signalPassFailure();
  }
};

struct MarkProcesses : impl::MarkProcessesBase<MarkProcesses> {
  using MarkProcessesBase::MarkProcessesBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (replicas > 1)
      module->setAttr(replicasAttrName, Builder(module.getContext()).getI64IntegerAttr(replicas));
    if (stages > 1)
      markStages(module, stages);
  }
};

} // namespace

} // namespace mlir::kiln
