// SPDX-License-Identifier: Apache-2.0
//
// Reverse-mode differentiation, op by op: gradients of an op's results become gradients of its operands
// (DifferentiableInterface), and gradients of one value accumulate. Values that do not depend on a parameter have none.
// ReverseLoop.cpp handles loops.
//
// A pipeline stage without the loss receives gradients of the values that it has sent, and sends gradients of the
// values that it has received:
//
//   kiln.send %y
//   %dy = kiln.receive going back
//   ...
//   kiln.send going back %dx
#include "compiler/training/Differentiate.h"

#include "compiler/dialect/Check.h"
#include "compiler/dialect/ReadValues.h"
#include "compiler/training/Reverse.h"

namespace mlir::kiln {

bool isDoneAgain(Operation *op) {
  if (isa<ParameterOp, ConstantOp, RankOp, StopGradientOp>(op))
    return true;
  auto inKernel = dyn_cast<KernelOpInterface>(op);
  return inKernel && inKernel.getElementCost() == ElementCost::Free;
}

static StringAttr nameOf(ParameterOp parameter) { return cast<StringAttr>(parameter.getSources()[0]); }

bool Reverse::hasParameter(Operation *op) const {
  return op
      ->walk([&](ParameterOp parameter) {
        return request.wanted.contains(nameOf(parameter)) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

void Reverse::findActive(Block &block) {
  auto depends = [&](Operation &op) {
    return hasParameter(&op) || llvm::any_of(readBy(&op), [&](Value value) { return isActive(value); });
  };
  for (Operation &op : block)
    if (!isa<StopGradientOp>(op) && (isa<ReceiveOp>(op) || depends(op)))
      for (Value result : op.getResults())
        activate(result);
}

void Reverse::add(Value value, Value gradient, Location loc) {
  Value &sum = gradients[value];
  sum = sum ? GradientBuilder(builder, loc).add(sum, gradient) : gradient;
}

void Reverse::addParameter(StringAttr name, Value gradient, Location loc) {
  Value &sum = parameters[name];
  sum = sum ? GradientBuilder(builder, loc).add(sum, gradient) : gradient;
}

/// Returns the gradient of a result; zeros if nothing depends on it.
Value Reverse::ofResult(Value result) {
  Value own = gradientOf(result);
  return own ? own : GradientBuilder(builder, result.getLoc()).zeros(rankedType(result));
}

/// Sends gradients of all received values, zeros included: the previous stage waits for all of them.
void Reverse::sendBack(ReceiveOp receive) {
  SmallVector<Value> values;
  for (Value value : receive.getValues())
    if (isFloat(value))
      values.push_back(ofResult(value));
  SendOp::create(builder, receive.getLoc(), values, Way::Back);
}

LogicalResult Reverse::reverse(Operation *op) {
  if (auto receive = dyn_cast<ReceiveOp>(op)) {
    sendBack(receive);
    return success();
  }
  if (auto parameter = dyn_cast<ParameterOp>(op)) {
    addParameter(nameOf(parameter), gradientOf(parameter), op->getLoc());
    return success();
  }
  if (auto loop = dyn_cast<LoopInterface>(op))
    return reverseLoop(loop);
  if (isa<StopGradientOp>(op))
    return success();
  auto differentiable = dyn_cast<DifferentiableInterface>(op);
  if (!differentiable)
    return op->emitError() << op->getName().stripDialect() << " has no derivative";
  if (auto custom = dyn_cast<CustomOp>(op); custom && !custom.getDerivative())
    return op->emitError() << getScope(op->getLoc()) << ": custom: function has no derivative; expected one between a "
                           << "parameter and the loss, got " << custom.getFunction();
  GradientBuilder b(builder, op->getLoc());
  SmallVector<Value> ofResults = llvm::map_to_vector(op->getResults(), [&](Value result) { return ofResult(result); });
  SmallVector<Value> ofOperands = differentiable.differentiate(b, ofResults);
  auto product = dyn_cast<LinearOp>(op);
  for (auto [operand, gradient] : llvm::zip_equal(op->getOperands(), ofOperands))
    if (product && operand == product.getWeight() && shared.contains(operand))
      postponed.push_back({product, ofResults[0], std::nullopt});
    else if (gradient && isActive(operand))
      add(operand, gradient, op->getLoc());
  return success();
}

LogicalResult Reverse::run(Block &block, Operation *end) {
  SmallVector<Operation *> ops;
  for (Operation &op : llvm::make_range(block.begin(), end->getIterator()))
    ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops))
    if ((isa<ReceiveOp>(op) ||
         llvm::any_of(op->getResults(), [&](Value result) { return gradients.contains(result); })) &&
        failed(reverse(op)))
      return failure();
  return success();
}

void eraseGradientMarks(func::FuncOp entry) {
  entry.walk([](Operation *op) {
    auto stop = dyn_cast<StopGradientOp>(op);
    auto average = dyn_cast<RunningAverageOp>(op);
    if (!stop && !average)
      return;
    op->getResult(0).replaceAllUsesWith(stop ? stop.getX() : average.getValue());
    op->erase();
  });
}

/// Creates the seed gradients: of the loss, or of what a pipeline stage sends. Returns the op after which they are
/// inserted, or null after a diagnostic.
static Operation *seed(func::FuncOp entry, OpBuilder &builder, Reverse &reverse) {
  auto end = cast<func::ReturnOp>(entry.getBody().front().getTerminator());
  if (auto sends = entry.getOps<SendOp>(); !sends.empty()) {
    SendOp send = *sends.begin();
    SmallVector<Value> sent = llvm::filter_to_vector(send.getValues(), isFloat);
    auto receive = ReceiveOp::create(builder, send.getLoc(), TypeRange(ValueRange(sent)), Way::Back);
    for (auto [value, gradient] : llvm::zip_equal(sent, receive.getValues()))
      if (reverse.isActive(value))
        reverse.add(value, gradient, send.getLoc());
    return receive;
  }
  Value loss = end.getNumOperands() > 0 ? end.getOperand(0) : Value();
  if (!loss) {
    entry.emitError() << "gradients: no result; expected a loss, a scalar of f32";
    return nullptr;
  }
  if (loss.getType() != RankedTensorType::get({}, Float32Type::get(entry.getContext()))) {
    entry.emitError() << "gradients: first result is no loss; expected a scalar of f32, got " << loss.getType();
    return nullptr;
  }
  Value one = GradientBuilder(builder, loss.getLoc()).number(loss, 1);
  reverse.add(loss, one, loss.getLoc());
  return one.getDefiningOp();
}

FailureOr<SmallVector<Value>> differentiate(func::FuncOp entry, ArrayRef<std::string> parameters,
                                            const DifferentiationOptions &options) {
  Block &block = entry.getBody().front();
  OpBuilder builder(block.getTerminator());
  GradientRequest request{{}, options};
  for (const std::string &name : parameters)
    request.wanted.insert(builder.getStringAttr(name));
  Reverse reverse(builder, request, {});
  reverse.findActive(block);
  Operation *begin = seed(entry, builder, reverse); // new ops are inserted after it
  if (!begin || failed(reverse.run(block, begin)))
    return failure();
  eraseGradientMarks(entry);
  SmallVector<Value> gradients;
  for (const std::string &name : parameters) {
    gradients.push_back(reverse.parameters.lookup(builder.getStringAttr(name)));
    if (!gradients.back())
      return entry.emitError()
             << "gradients: loss does not depend on a parameter; expected that it depends on each of the entry, got \""
             << name << "\"";
  }
  return gradients;
}

} // namespace mlir::kiln
