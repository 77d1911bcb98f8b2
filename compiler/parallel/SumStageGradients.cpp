// SPDX-License-Identifier: Apache-2.0
//
// A parameter outside of the layers may be on the first and the last stage or, if all layers read a value that is
// computed from it, on all stages. Then each of these stages has a part of its gradient:
//
//   kiln.send going across %dw                  between the first and the last stage
//   %other = kiln.receive going across
//   %sum = kiln.add %first, %last               in this order on both
#include "compiler/dialect/StageRoles.h"
#include "compiler/parallel/Passes.h"
#include "compiler/training/TrainProcess.h"

namespace kiln {

using namespace mlir;
namespace kd = mlir::kiln;

/// Returns the sum of the gradients of all stages that have the parameter. All of them get the same bits.
static Value sumGradient(kd::GradientBuilder &b, func::FuncOp function, const kd::TrainedParameter &parameter,
                         Value gradient) {
  if (parameter.roles < 2)
    return gradient;
  if (parameter.roles > 2)
    return sumOverStages(b, function, gradient);
  Value other = b.exchange(gradient, kd::Way::Across);
  return kd::getStageRole(function) == "first" ? b.add(gradient, other) : b.add(other, gradient);
}

/// Sums values over pipeline stages: gradients of parameters that several stages have, and the loss.
static LogicalResult sumGradients(func::FuncOp function) {
  const std::optional<kd::TrainingRequest> request = kd::TrainingRequest::of(function);
  if (!request || countStages(function) == 1)
    return success();
  FailureOr<SmallVector<kd::GradientResult>> gradients = kd::takeGradients(function, *request);
  if (failed(gradients))
    return failure();
  Operation *end = function.getBody().front().getTerminator();
  OpBuilder builder(end);
  kd::GradientBuilder b(builder, function.getLoc());
  for (auto [each, parameter] : llvm::zip_equal(*gradients, request->parameters))
    each.value = sumGradient(b, function, parameter, each.value);
  end->setOperand(0, sumOverStages(b, function, end->getOperand(0)));
  kd::addGradients(function, *gradients);
  return success();
}

} // namespace kiln

namespace mlir::kiln {

#define GEN_PASS_DEF_SUMSTAGEGRADIENTS
#include "compiler/parallel/Passes.h.inc"

namespace {

struct SumStageGradients : impl::SumStageGradientsBase<SumStageGradients> {
  using SumStageGradientsBase::SumStageGradientsBase;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(::kiln::sumGradients(function)))
        return signalPassFailure();
  }
};

} // namespace
} // namespace mlir::kiln
