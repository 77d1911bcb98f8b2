// SPDX-License-Identifier: Apache-2.0
//
// 1. Find the stack of each entry, and refuse what stages cannot do.
// 2. Give the stack a stage's number of layers, and its sequences those of the stage.
// 3. Make a copy of the entry for each role: what the stack begins with is received, what it leaves is sent.
// 4. Drop what a copy does not need for what it sends or returns.
#include "compiler/transforms/CutStages.h"

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
#include "compiler/dialect/gradients/GradientBuilder.h"
#include "compiler/transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::kiln {

#define GEN_PASS_DEF_CUTSTAGES
#include "compiler/transforms/Passes.h.inc"

SmallVector<StringRef> getStageRoles(int64_t stages) {
  if (stages == 1)
    return {""};
  SmallVector<StringRef> roles{"first", "last"};
  if (stages > 2)
    roles.push_back("middle");
  return roles;
}

std::string getRoleName(StringRef entry, StringRef role) {
  return role.empty() ? entry.str() : (entry + "_" + role).str();
}

namespace {

/// The loops over layers of an entry that are in no other loop.
SmallVector<LoopInterface> findStacks(func::FuncOp entry) {
  return llvm::filter_to_vector(entry.getOps<LoopInterface>(), [](LoopInterface loop) { return loop.isOverLayers(); });
}

/// The one of them; null after a diagnostic.
LoopInterface findStack(func::FuncOp entry, int64_t stages) {
  const SmallVector<LoopInterface> stacks = findStacks(entry);
  if (stacks.size() != 1) {
    entry.emitError() << stages << " stages require one stack in each entry, got " << stacks.size() << " in "
                      << entry.getName();
    return {};
  }
  LoopInterface stack = stacks.front();
  const int64_t count = cast<AffineConstantExpr>(stack.getTripCount()).getValue();
  if (count % stages != 0) {
    stack.emitError() << stages << " stages require a number of layers that they divide, got " << count << " in "
                      << entry.getName();
    return {};
  }
  if (!stack.getStacked().empty()) {
    stack.emitError() << "stages require a stack of which the last layer alone is read, got all of them in "
                      << entry.getName();
    return {};
  }
  return stack;
}

/// That all else that is there in several copies, or lives between calls, is the stack's own.
LogicalResult checkLayers(func::FuncOp entry, LoopInterface stack) {
  WalkResult result = entry.walk([&](Operation *op) {
    auto loop = dyn_cast<LoopInterface>(op);
    if (loop && loop.isOverLayers() && op != stack) {
      op->emitError() << "stages require layers without stacks in them, and no other loop over layers, got one in "
                      << entry.getName();
      return WalkResult::interrupt();
    }
    if (isa<StateOp, AppendOp, StoreOp>(op) && !stack->isProperAncestor(op)) {
      op->emitError() << "stages require states of the stack's layers, got "
                      << op->getAttrOfType<StringAttr>("name").getValue() << " outside of it in " << entry.getName();
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// Of a sequence of all layers those of the stage.
Value takeOwn(GradientBuilder &b, Value sequence, int64_t stages) {
  SmallVector<AffineExpr> extents = getExtents(rankedType(sequence));
  extents.front() = extents.front().floorDiv(stages);
  extents.insert(extents.begin(), getAffineConstantExpr(stages, sequence.getContext()));
  auto number = RankedTensorType::get({}, IntegerType::get(sequence.getContext(), 32));
  return b.create<GatherOp>(b.reshape(sequence, extents), b.createAs<RankOp>(number, Group::Stages), 0);
}

/// The stack becomes a stage's.
void shorten(LoopInterface stack, int64_t stages) {
  const int64_t count = cast<AffineConstantExpr>(stack.getTripCount()).getValue() / stages;
  OpBuilder builder(stack);
  GradientBuilder b(builder, stack.getLoc());
  if (auto repeat = dyn_cast<RepeatOp>(stack.getOperation()))
    repeat.setCount(count);
  else
    for (OpOperand &sequence : cast<ScanOp>(stack.getOperation()).getSequencesMutable())
      sequence.set(takeOwn(b, sequence.get(), stages));
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

/// Instead of results of the entry.
void sendResults(func::FuncOp function, LoopInterface stack) {
  Operation *end = function.getBody().front().getTerminator();
  OpBuilder builder(end);
  SendOp::create(builder, stack.getLoc(), stack->getResults(), Way::Onward);
  end->setOperands({});
  function.setType(builder.getFunctionType(function.getArgumentTypes(), {}));
  function.removeResAttrsAttr();
}

/// Behind what reads it an op is met that nothing reads.
void eraseUnused(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

func::FuncOp makeRole(func::FuncOp entry, StringRef role) {
  OpBuilder builder(entry);
  auto function = cast<func::FuncOp>(builder.clone(*entry));
  function.setName(getRoleName(entry.getName(), role));
  function->setAttr(roleAttrName, builder.getStringAttr(role));
  LoopInterface stack = findStacks(function).front();
  if (role != "first")
    receiveInits(stack);
  if (role != "last")
    sendResults(function, stack);
  eraseUnused(function.getBody().front());
  return function;
}

struct CutStages : impl::CutStagesBase<CutStages> {
  using CutStagesBase::CutStagesBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    module->setAttr(stagesAttrName, Builder(module.getContext()).getI64IntegerAttr(stages));
    for (func::FuncOp entry : llvm::to_vector(module.getOps<func::FuncOp>()))
      if (!entry->hasAttr(roleAttrName) && failed(cutStages(entry, stages)))
        return signalPassFailure();
  }
};

} // namespace

FailureOr<SmallVector<func::FuncOp>> cutStages(func::FuncOp entry, int64_t stages) {
  LoopInterface stack = findStack(entry, stages);
  if (!stack || failed(checkLayers(entry, stack)))
    return failure();
  shorten(stack, stages);
  SmallVector<func::FuncOp> roles;
  for (StringRef role : getStageRoles(stages)) {
    const std::string name = getRoleName(entry.getName(), role);
    if (entry->getParentOfType<ModuleOp>().lookupSymbol(name))
      return entry.emitError() << "stages require the name " << name << " for what they compute, got an entry";
    roles.push_back(makeRole(entry, role));
  }
  entry.erase();
  return roles;
}

} // namespace mlir::kiln
