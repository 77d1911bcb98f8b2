// SPDX-License-Identifier: Apache-2.0
#include "compiler/transforms/PlanMemory.h"

#include "compiler/transforms/PackArena.h"
#include "compiler/transforms/ShareBuffers.h"
#include "compiler/transforms/VerifyMemoryPlan.h"

namespace mlir::kiln {

FailureOr<MemoryPlan> MemoryPlan::compute(func::FuncOp entry) {
  BufferSharing sharing(entry);
  if (!sharing.getConflicts().empty()) {
    OpOperand *operand = sharing.getConflicts().front();
    return operand->getOwner()->emitError() << "memory plan: copy of operand " << operand->getOperandNumber()
                                            << " is missing; expected that kiln-plan-memory inserts it";
  }

  MemoryPlan plan;
  plan.steps.assign(sharing.getSteps().begin(), sharing.getSteps().end());
  int64_t arguments = 0;
  for (BlockArgument argument : entry.getArguments())
    if (isa<RankedTensorType>(argument.getType()))
      plan.places[argument] = {MemoryPlacement::Kind::Argument, arguments++};
  entry.walk([&](Operation *op) {
    if (isa<ParameterOp>(op))
      plan.places[op->getResult(0)] = {MemoryPlacement::Kind::Parameter, 0};
    else if (isa<ConstantOp, RankOp>(op))
      plan.places[op->getResult(0)] = {MemoryPlacement::Kind::Constant, 0};
    else if (isa<AppendOp, SlideOp, StateOp>(op))
      plan.places[op->getResult(0)] = {MemoryPlacement::Kind::State, 0};
  });

  SmallVector<ArenaInterval> intervals;
  for (auto [i, members] : llvm::enumerate(sharing.getBuffers())) {
    if (members.empty())
      continue;
    if (auto output = sharing.getOutputs().find(i); output != sharing.getOutputs().end()) {
      for (unsigned member : members)
        plan.places[sharing.getNodes()[member].value] = {MemoryPlacement::Kind::Argument,
                                                         arguments + static_cast<int64_t>(output->second)};
      continue;
    }
    if (Operation *home = sharing.getHomes().lookup(i)) {
      const Value value = sharing.getNodes()[members.front()].value;
      plan.places[value] = {MemoryPlacement::Kind::Home, 0};
      plan.homes[value] = home;
      continue;
    }
    Buffer buffer;
    buffer.first = plan.steps.size();
    for (unsigned member : members) {
      const BufferSharing::Node &node = sharing.getNodes()[member];
      if (node.bytes == 0)
        return entry.emitError() << "memory plan: dynamic dimension without bounds; expected bounds on all of "
                                 << node.value.getType();
      buffer.bytes = node.bytes;
      buffer.first = std::min(buffer.first, node.first);
      buffer.last = std::max(buffer.last, node.last);
      buffer.values.push_back(node.value);
    }
    intervals.push_back({buffer.bytes, buffer.first, buffer.last, 0});
    plan.buffers.push_back(std::move(buffer));
  }
  plan.bytes = packArena(intervals);
  plan.bound = getArenaLowerBound(intervals);
  for (auto [buffer, interval] : llvm::zip_equal(plan.buffers, intervals)) {
    buffer.offset = interval.offset;
    for (Value value : buffer.values)
      plan.places[value] = {MemoryPlacement::Kind::Arena, interval.offset};
  }
  if (failed(verifyMemoryPlan(entry, plan)))
    return failure();
  return plan;
}

MemoryPlacement MemoryPlan::of(Value tensor) const {
  auto place = places.find(getViewed(tensor));
  assert(place != places.end() && "a tensor of the entry that was planned");
  return place->second;
}

} // namespace mlir::kiln
