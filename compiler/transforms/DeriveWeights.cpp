// SPDX-License-Identifier: Apache-2.0
//
// What follows from weights only and takes divisions or roots, as the scales of a batch norm do, is computed when they
// are bound: it becomes a weight with a formula.
#include "compiler/transforms/Passes.h"

#include "compiler/dialect/KilnDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::kiln {

#define GEN_PASS_DEF_DERIVEWEIGHTS
#include "compiler/transforms/Passes.h.inc"

namespace {

/// A weight as the file has it, which stays what it was bound to.
ParameterOp getPlainWeight(Value value) {
  auto parameter = value.getDefiningOp<ParameterOp>();
  const bool isPlain = parameter && !parameter.getVariable() && !parameter.getStorage() && !parameter.getFormula() &&
                       parameter.getSources().size() == 1 &&
                       !cast<RankedTensorType>(parameter.getType()).getEncoding() &&
                       getElementTypeOrSelf(parameter.getType()).isF32();
  return isPlain ? parameter : ParameterOp();
}

/// A formula of one value, in postfix order.
class Formula {
public:
  explicit Formula(Value value) : builder(value.getContext()), type(cast<RankedTensorType>(value.getType())) {
    isWhole = type.hasStaticShape() && !type.getEncoding() && add(value);
  }

  /// The weight that takes the value's place; null if it does not follow from weights by a division or a root, or is
  /// deeper than the run time's stack.
  ParameterOp create(Operation *root) {
    if (!isWhole || !isCostly || sources.empty() || deepest > formulaDepth)
      return {};
    OpBuilder at(root);
    return ParameterOp::create(at, root->getLoc(), type, at.getArrayAttr(sources), copies, DenseI64ArrayAttr(), 0,
                               /*variable=*/false, StorageAttr(), at.getArrayAttr(steps));
  }

private:
  bool add(Value value) {
    if (ParameterOp weight = getPlainWeight(value)) {
      if (weight.getType() != type)
        return false;
      copies = weight.getCopies();
      auto known = llvm::find(sources, weight.getSources()[0]);
      if (known == sources.end())
        known = &sources.emplace_back(weight.getSources()[0]);
      return push(builder.getI64IntegerAttr(known - sources.begin()));
    }
    if (std::optional<double> number = getSplat(value); number && getElementTypeOrSelf(value.getType()).isF32())
      return push(builder.getF32FloatAttr(static_cast<float>(*number)));
    Operation *op = value.getDefiningOp();
    // Kernels join a product and a sum in one operation, which is rounded once.
    auto isProduct = [](Value operand) { return operand.getDefiningOp<MulOp>() != nullptr; };
    if (!isa_and_nonnull<AddOp, SubOp, MulOp, DivOp, SqrtOp>(op) ||
        (isa<AddOp, SubOp>(op) && llvm::any_of(op->getOperands(), isProduct)) ||
        !llvm::all_of(op->getOperands(), [&](Value operand) { return add(operand); }))
      return false;
    isCostly |= isa<DivOp, SqrtOp>(op);
    depth -= static_cast<int64_t>(op->getNumOperands());
    return push(builder.getStringAttr(op->getName().stripDialect()));
  }

  bool push(Attribute step) {
    steps.push_back(step);
    deepest = std::max(deepest, ++depth);
    return true;
  }

  Builder builder;
  RankedTensorType type;
  SmallVector<Attribute> sources, steps;
  int64_t copies = 1, depth = 0, deepest = 0;
  bool isWhole = false, isCostly = false;
};

struct DeriveWeights : impl::DeriveWeightsBase<DeriveWeights> {
  using DeriveWeightsBase::DeriveWeightsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const bool isCut = module->hasAttr(ranksAttrName) || module->hasAttr(stagesAttrName);
    const bool changesWeights = module
                                    .walk([](ParameterOp parameter) {
                                      return parameter.getVariable() ? WalkResult::interrupt() : WalkResult::advance();
                                    })
                                    .wasInterrupted();
    if (isCut || changesWeights)
      return;
    SmallVector<Operation *> ops; // those that read first
    module.walk<WalkOrder::PostOrder>([&](Operation *op) {
      if (isa<DivOp, MulOp, AddOp, SubOp, SqrtOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : llvm::reverse(ops))
      if (!op->use_empty())
        if (ParameterOp derived = Formula(op->getResult(0)).create(op))
          op->replaceAllUsesWith(derived);
  }
};

} // namespace
} // namespace mlir::kiln
