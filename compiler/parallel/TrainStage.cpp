// SPDX-License-Identifier: Apache-2.0
//
// A parameter outside of the layers may be on the first and the last stage or, if all layers read a value that is
// computed from it, on all stages. Then each of these stages has a part of its gradient:
//
//   kiln.send going across %dw                  between the first and the last stage
//   %other = kiln.receive going across
//   %sum = kiln.add %first, %last               in this order on both
#include "compiler/parallel/TrainStage.h"

#include "compiler/parallel/CutStages.h"
#include "compiler/parallel/Passes.h"
#include <set>

namespace kiln {

using namespace mlir;
namespace kd = mlir::kiln;

/// Returns the role of a part of an entry, or an empty text.
static StringRef roleOf(func::FuncOp function) {
  auto role = function->getAttrOfType<StringAttr>(kd::roleAttrName);
  return role ? role.getValue() : "";
}

StringRef entryOf(func::FuncOp function) {
  StringRef name = function.getName();
  if (const StringRef role = roleOf(function); !role.empty() && name.consume_back(role))
    name.consume_back("_");
  return name;
}

llvm::StringMap<kd::ParameterOp> findParameters(func::FuncOp function) {
  llvm::StringMap<kd::ParameterOp> found;
  function.walk([&](kd::ParameterOp parameter) {
    for (StringRef name : parameter.getSources().getAsValueRange<StringAttr>())
      found[name] = parameter;
  });
  return found;
}

/// Returns the names of the parameters that a function assigns.
static std::set<std::string> findAssigned(func::FuncOp function) {
  std::set<std::string> names;
  function.walk([&](kd::AssignOp assign) {
    Value parameter = assign.getParameter();
    for (StringRef name : parameter.getDefiningOp<kd::ParameterOp>().getSources().getAsValueRange<StringAttr>())
      names.insert(name.str());
  });
  return names;
}

LogicalResult checkUpdates(ModuleOp module) {
  for (auto trained : module.getOps<func::FuncOp>())
    for (const std::string &name : findAssigned(trained))
      for (auto reader : module.getOps<func::FuncOp>()) {
        auto own = module.lookupSymbol<func::FuncOp>(kd::getStageRoleName(entryOf(trained), roleOf(reader)));
        if (findParameters(reader).contains(name) && !findAssigned(own).contains(name))
          return reader.emitError() << "--stages: weight is trained elsewhere; expected " << entryOf(trained)
                                    << " to train it on each stage that has it, got " << name << ", which "
                                    << entryOf(reader) << " reads on the " << roleOf(reader) << " one";
      }
  return success();
}

int64_t countStages(func::FuncOp function) {
  return roleOf(function).empty() ? 1 : kd::getNumRanks(function, kd::Group::Stages);
}

bool isLastStage(func::FuncOp function) { return countStages(function) == 1 || roleOf(function) == "last"; }

int64_t mostAhead(func::FuncOp function) {
  for (const kd::StageRole &role : kd::getStageRoles(function->getParentOfType<ModuleOp>()))
    if (role.name == roleOf(function))
      return countStages(function) - role.stage;
  return 1;
}

void selectParameters(func::FuncOp function, ArrayRef<func::FuncOp> roles, kd::TrainingRequest &request) {
  llvm::StringMap<int64_t> holders; // parameter -> number of roles that have it
  for (func::FuncOp role : roles)
    for (const auto &[name, parameter] : findParameters(role)) {
      const bool isOfLayer = StringRef(name).contains("{}"); // each stage has other layers
      holders[name] = isOfLayer ? 1 : holders[name] + 1;
    }
  llvm::StringMap<kd::ParameterOp> own = findParameters(function);
  llvm::erase_if(request.parameters, [&](const kd::TrainedParameter &each) {
    return holders.contains(each.name) && !own.contains(each.name);
  });
  for (kd::TrainedParameter &each : request.parameters) {
    if (kd::ParameterOp parameter = own.lookup(each.name))
      each.copies = static_cast<int64_t>(parameter.getCopies());
    each.roles = std::max<int64_t>(holders.lookup(each.name), 1);
    each.isCountedHere = each.roles < 2 || roleOf(function) == "first";
  }
}

Value sumOverStages(kd::GradientBuilder &b, func::FuncOp function, Value number) {
  return countStages(function) > 1 ? b.create<kd::AllReduceOp>(number, kd::Group::Stages) : number;
}

/// Returns the sum of the gradients of all stages that have the parameter. All of them get the same bits.
static Value sumGradient(kd::GradientBuilder &b, func::FuncOp function, const kd::TrainedParameter &parameter,
                         Value gradient) {
  if (parameter.roles < 2)
    return gradient;
  if (parameter.roles > 2)
    return sumOverStages(b, function, gradient);
  Value other = b.exchange(gradient, kd::Way::Across);
  return roleOf(function) == "first" ? b.add(gradient, other) : b.add(other, gradient);
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
