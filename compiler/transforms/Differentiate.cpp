// SPDX-License-Identifier: Apache-2.0
//
// Going backwards from op to op, gradients of an op's results become gradients of its operands
// (DifferentiableInterface), and gradients of one value add up. What does not depend on a parameter has none.
#include "compiler/transforms/Differentiate.h"

#include "compiler/dialect/gradients/GradientBuilder.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::kiln {

std::string gradientName(StringRef parameter) {
  std::string name = "grad";
  SmallVector<StringRef> parts;
  parameter.split(parts, '.');
  for (StringRef part : parts)
    if (part != "{}")
      name += "_" + part.str();
  return name;
}

namespace {

class Reverse {
public:
  Reverse(OpBuilder &builder, Block &block) : builder(builder) { findActive(block); }

  /// Behind the op of the block that ends it.
  LogicalResult run(Block &block, Value loss);

  /// By name; the sum over all that have it.
  llvm::MapVector<StringAttr, Value> parameters;

private:
  void findActive(Block &block);
  void add(Value value, Value gradient, Location loc);
  LogicalResult reverse(Operation *op);

  OpBuilder &builder;
  llvm::DenseSet<Value> active; // what depends on a parameter
  DenseMap<Value, Value> gradients;
};

bool isFloat(Value value) { return isa<FloatType>(rankedType(value).getElementType()); }

void Reverse::findActive(Block &block) {
  for (Operation &op : block) {
    auto parameter = dyn_cast<ParameterOp>(op);
    if (parameter || llvm::any_of(op.getOperands(), [&](Value operand) { return active.contains(operand); }))
      for (Value result : op.getResults())
        if (isFloat(result))
          active.insert(result);
    if (parameter)
      parameters.try_emplace(cast<StringAttr>(parameter.getSources()[0]), Value());
  }
}

void Reverse::add(Value value, Value gradient, Location loc) {
  Value &sum = gradients[value];
  sum = sum ? GradientBuilder(builder, loc).add(sum, gradient) : gradient;
}

LogicalResult Reverse::reverse(Operation *op) {
  if (auto parameter = dyn_cast<ParameterOp>(op)) {
    Value &sum = parameters[cast<StringAttr>(parameter.getSources()[0])];
    Value own = gradients.lookup(parameter);
    sum = sum ? GradientBuilder(builder, op->getLoc()).add(sum, own) : own;
    return success();
  }
  auto differentiable = dyn_cast<DifferentiableInterface>(op);
  if (!differentiable)
    return op->emitError() << op->getName().stripDialect() << " has no derivative [gradient_c2]";
  GradientBuilder b(builder, op->getLoc());
  SmallVector<Value> ofResults;
  for (Value result : op->getResults()) {
    Value own = gradients.lookup(result);
    ofResults.push_back(own ? own : b.zeros(rankedType(result)));
  }
  SmallVector<Value> ofOperands = differentiable.differentiate(b, ofResults);
  for (auto [operand, gradient] : llvm::zip_equal(op->getOperands(), ofOperands))
    if (gradient && active.contains(operand))
      add(operand, gradient, op->getLoc());
  return success();
}

LogicalResult Reverse::run(Block &block, Value loss) {
  GradientBuilder b(builder, loss.getLoc());
  if (active.contains(loss))
    gradients[loss] = b.number(loss, 1);
  SmallVector<Operation *> ops;
  for (Operation &op : block)
    if (llvm::any_of(op.getResults(), [&](Value result) { return active.contains(result); }))
      ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops))
    if (llvm::any_of(op->getResults(), [&](Value result) { return gradients.contains(result); }) && failed(reverse(op)))
      return failure();
  return success();
}

} // namespace

LogicalResult differentiate(func::FuncOp entry) {
  Block &block = entry.getBody().front();
  auto end = cast<func::ReturnOp>(block.getTerminator());
  Value loss = end.getOperand(0);
  if (loss.getType() != RankedTensorType::get({}, Float32Type::get(entry.getContext())))
    return entry.emitError() << "gradients require a first result of type f32 without axes, got " << loss.getType()
                             << " [gradient_c1]";
  SmallVector<Operation *> forward;
  OpBuilder builder(end);
  Reverse reverse(builder, block);
  if (failed(reverse.run(block, loss)))
    return failure();
  SmallVector<Value> results(end.getOperands());
  SmallVector<StringRef> names;
  for (auto &[name, gradient] : reverse.parameters) {
    if (!gradient)
      return entry.emitError() << "gradients require a loss that depends on all parameters of the entry, got one that "
                                  "does not depend on \""
                               << name.getValue() << "\" [gradient_c3]";
    results.push_back(gradient);
    names.push_back(name.getValue());
  }
  end.getOperandsMutable().assign(results);
  const unsigned given = entry.getNumResults();
  entry.setType(builder.getFunctionType(entry.getArgumentTypes(), ValueRange(results).getTypes()));
  for (auto [i, name] : llvm::enumerate(names))
    entry.setResultAttr(given + i, nameAttrName, builder.getStringAttr(gradientName(name)));
  return success();
}

} // namespace mlir::kiln
