// SPDX-License-Identifier: Apache-2.0
//
// Adds gradients to the entries that ask for them. The functions of all roles of an entry's pipeline stages are handled
// together, since a parameter may be on several of them.
#include "compiler/dialect/StageRoles.h"
#include "compiler/training/Differentiate.h"
#include "compiler/training/Passes.h"
#include "compiler/training/TrainProcess.h"
#include "kiln/training.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::kiln {

#define GEN_PASS_DEF_DIFFERENTIATE
#include "compiler/training/Passes.h.inc"

namespace {

/// Checks that no inputs, results or parameters share a name.
LogicalResult checkNames(func::FuncOp function, ArrayRef<std::string> more) {
  llvm::StringMap<bool> known;
  auto add = [&](StringRef name) { return known.try_emplace(name).second; };
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto name = function.getArgAttrOfType<StringAttr>(i, nameAttrName))
      add(name);
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (auto name = function.getResultAttrOfType<StringAttr>(i, nameAttrName))
      add(name);
  for (const std::string &name : more)
    if (!add(name))
      return function.emitError() << "entry " << function.getName()
                                  << ": repeated name; expected different ones for its inputs and outputs, got " << name
                                  << " twice";
  return success();
}

/// Adds the result of a pipeline stage that does not compute the loss. It is named like the entry's first result, and
/// is zero until the stages add it up.
void giveLoss(func::FuncOp function, StringRef name) {
  OpBuilder builder(function.getBody().front().getTerminator());
  GradientBuilder b(builder, function.getLoc());
  addResult(function, b.zeros(RankedTensorType::get({}, builder.getF32Type())), name);
}

LogicalResult differentiateEntry(func::FuncOp function, const TrainingRequest &request) {
  const bool isGiven = request.options.update == ::kiln::Update::give;
  std::vector<std::string> parameters, names;
  for (const TrainedParameter &each : request.parameters) {
    parameters.push_back(each.name);
    names.push_back(::kiln::gradient_name(each.name));
  }
  if (failed(checkNames(function, isGiven ? names : std::vector<std::string>{"grad_norm"})))
    return failure();
  DifferentiationOptions options{request.options.recomputes, {}};
  if (request.options.activations != ::kiln::ElementType::f32)
    options.keptAs = fromElementType(request.options.activations, function.getContext());
  FailureOr<SmallVector<Value>> gradients = differentiate(function, parameters, options);
  if (failed(gradients))
    return failure();
  if (!::kiln::isLastStage(function))
    giveLoss(function, request.loss);
  SmallVector<GradientResult> results;
  for (auto [parameter, name, gradient] : llvm::zip_equal(parameters, names, *gradients))
    results.push_back({parameter, gradient, isGiven ? StringAttr::get(function.getContext(), name) : StringAttr()});
  addGradients(function, results);
  request.write(function);
  return success();
}

struct Differentiate : impl::DifferentiateBase<Differentiate> {
  using DifferentiateBase::DifferentiateBase;

  void runOnOperation() override {
    llvm::MapVector<StringRef, SmallVector<func::FuncOp>> entries;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(trainingAttrName))
        entries[getEntryName(function)].push_back(function);
      else
        eraseGradientMarks(function);
    for (const auto &[name, roles] : entries) {
      std::vector<TrainingRequest> requests;
      for (func::FuncOp role : roles) {
        requests.push_back(*TrainingRequest::of(role));
        ::kiln::selectParameters(role, roles, requests.back());
      }
      for (auto [role, request] : llvm::zip_equal(roles, requests))
        if (failed(differentiateEntry(role, request)))
          return signalPassFailure();
    }
  }
};

} // namespace
} // namespace mlir::kiln
