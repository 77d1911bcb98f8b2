// SPDX-License-Identifier: Apache-2.0
//
// 1. Find the stack of each entry, and refuse what stages cannot do.
// 2. Give the stack a stage's number of layers.
// 3. Make a copy of the entry for each role: what the stack begins with is received, what it leaves is sent.
// 4. Drop what a copy does not need for what it sends or returns.
#include "compiler/transforms/CutStages.h"

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
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

/// The one loop over layers of an entry; null after a diagnostic.
RepeatOp findStack(func::FuncOp entry, int64_t stages) {
  auto stacks = llvm::to_vector(entry.getOps<RepeatOp>());
  if (stacks.size() != 1) {
    entry.emitError() << stages << " stages require one stack in each entry, got " << stacks.size() << " in "
                      << entry.getName();
    return {};
  }
  RepeatOp stack = stacks.front();
  const auto count = static_cast<int64_t>(stack.getCount());
  if (count % stages != 0) {
    stack.emitError() << stages << " stages require a number of layers that they divide, got " << count << " in "
                      << entry.getName();
    return {};
  }
  if (!LoopInterface(stack).getStacked().empty()) {
    stack.emitError() << "stages require a stack of which the last layer alone is read, got all of them in "
                      << entry.getName();
    return {};
  }
  return stack;
}

/// That all else that is there in several copies, or lives between calls, is the stack's own.
LogicalResult checkLayers(func::FuncOp entry, RepeatOp stack) {
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

/// The stack becomes a stage's.
void shorten(RepeatOp stack, int64_t stages) {
  auto count = static_cast<int64_t>(stack.getCount()) / stages;
  stack.setCount(count);
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

void receiveInits(RepeatOp stack) {
  OpBuilder builder(stack);
  auto receive = ReceiveOp::create(builder, stack.getLoc(), stack.getInits().getTypes());
  stack.getInitsMutable().assign(receive.getValues());
}

/// Instead of results of the entry.
void sendResults(func::FuncOp function, RepeatOp stack) {
  Operation *end = function.getBody().front().getTerminator();
  OpBuilder builder(end);
  SendOp::create(builder, stack.getLoc(), stack.getResults());
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

struct CutStages : impl::CutStagesBase<CutStages> {
  using CutStagesBase::CutStagesBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (func::FuncOp entry : llvm::to_vector(module.getOps<func::FuncOp>()))
      if (failed(cut(entry)))
        return signalPassFailure();
    module->setAttr(stagesAttrName, Builder(module.getContext()).getI64IntegerAttr(stages));
  }

private:
  LogicalResult cut(func::FuncOp entry) {
    RepeatOp stack = findStack(entry, stages);
    if (!stack || failed(checkLayers(entry, stack)))
      return failure();
    shorten(stack, stages);
    for (StringRef role : getStageRoles(stages)) {
      const std::string name = getRoleName(entry.getName(), role);
      if (getOperation().lookupSymbol(name))
        return entry.emitError() << "stages require the name " << name << " for what they compute, got an entry";
      OpBuilder builder(entry);
      auto function = cast<func::FuncOp>(builder.clone(*entry));
      function.setName(name);
      RepeatOp own = *function.getOps<RepeatOp>().begin();
      if (role != "first")
        receiveInits(own);
      if (role != "last")
        sendResults(function, own);
      eraseUnused(function.getBody().front());
    }
    entry.erase();
    return success();
  }
};

} // namespace
} // namespace mlir::kiln
