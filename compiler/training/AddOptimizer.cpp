// SPDX-License-Identifier: Apache-2.0
//
// Adds the parameter updates after the gradients of all parameters. If the gradients or the loss are not finite,
// nothing is updated.
#include "compiler/dialect/Training.h"
#include "compiler/training/Passes.h"
#include "compiler/training/Updater.h"

namespace mlir::kiln {

#define GEN_PASS_DEF_ADDOPTIMIZER
#include "compiler/training/Passes.h.inc"

namespace {

/// Makes the gradients results that callers get.
void give(func::FuncOp function, ArrayRef<GradientResult> gradients) {
  for (const GradientResult &each : gradients)
    addResult(function, each.value, each.name ? each.name.getValue() : StringRef(each.parameter));
}

LogicalResult update(func::FuncOp function, const TrainingRequest &request, ArrayRef<GradientResult> gradients) {
  Value rate = getInput(function, "learning_rate"), step = getInput(function, "step");
  if (!rate || !step)
    return function.emitError() << "training: no learning rate or step; expected inputs of these names";
  SmallVector<::kiln::Trained> trained;
  for (auto [parameter, gradient] : llvm::zip_equal(request.parameters, gradients)) {
    RankedTensorType type = gradient.whole;
    if (!type) {
      type = rankedType(gradient.value);
      type = RankedTensorType::get(type.getShape().drop_front(parameter.layers()), type.getElementType());
    }
    trained.push_back({parameter, gradient.value, type, gradient.isShared()});
  }
  Operation *end = function.getBody().front().getTerminator();
  OpBuilder builder(end);
  ::kiln::Updater updater(builder, request.options, function);
  Value loss = end->getOperand(0), norm;
  if (request.options.clip > 0) {
    norm = updater.clip(trained);
    addResult(function, norm, "grad_norm");
  }
  updater.prepare(rate, step);
  RequireFiniteOp::create(builder, function.getLoc(), updater.size(trained, loss, norm));
  updater.update(trained);
  return success();
}

struct AddOptimizer : impl::AddOptimizerBase<AddOptimizer> {
  using AddOptimizerBase::AddOptimizerBase;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      const std::optional<TrainingRequest> request = TrainingRequest::of(function);
      if (!request)
        continue;
      FailureOr<SmallVector<GradientResult>> gradients = takeGradients(function, *request);
      if (failed(gradients))
        return signalPassFailure();
      if (request->options.update == ::kiln::Update::give)
        give(function, *gradients);
      else if (failed(update(function, *request, *gradients)))
        return signalPassFailure();
      TrainingRequest::erase(function);
    }
  }
};

} // namespace
} // namespace mlir::kiln
