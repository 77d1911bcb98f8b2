// SPDX-License-Identifier: Apache-2.0
#include "compiler/training/TrainProcess.h"

#include "compiler/dialect/StageRoles.h"
#include <numeric>

namespace kiln {

using namespace mlir;
namespace kd = mlir::kiln;

llvm::StringMap<kd::ParameterOp> findParameters(func::FuncOp function) {
  llvm::StringMap<kd::ParameterOp> found;
  function.walk([&](kd::ParameterOp parameter) {
    for (StringRef name : parameter.getSources().getAsValueRange<StringAttr>())
      found[name] = parameter;
  });
  return found;
}

int64_t countStages(func::FuncOp function) {
  return kd::getStageRole(function).empty() ? 1 : kd::getNumRanks(function, kd::Group::Stages);
}

bool isLastStage(func::FuncOp function) { return countStages(function) == 1 || kd::getStageRole(function) == "last"; }

int64_t mostAhead(func::FuncOp function) {
  for (const kd::StageRole &role : kd::getStageRoles(function->getParentOfType<ModuleOp>()))
    if (role.name == kd::getStageRole(function))
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
    each.isCountedHere = each.roles < 2 || kd::getStageRole(function) == "first";
  }
}

Value sumOverStages(kd::GradientBuilder &b, func::FuncOp function, Value number) {
  return countStages(function) > 1 ? b.create<kd::AllReduceOp>(number, kd::Group::Stages) : number;
}

Value partOfReplica(kd::GradientBuilder &b, Value parts, unsigned axis) {
  auto number = RankedTensorType::get({}, IntegerType::get(parts.getContext(), 32));
  return b.create<kd::GatherOp>(parts, b.createAs<kd::RankOp>(number, kd::Group::Replicas), axis);
}

int64_t countBatchParts(func::FuncOp function, const kd::TrainingRequest &request) {
  auto parts = function->getParentOfType<ModuleOp>()->getAttrOfType<IntegerAttr>(kd::reductionPartsAttrName);
  if (!parts || function->hasAttr(kd::roleAttrName))
    return 0;
  const int64_t replicas = kd::getNumRanks(function, kd::Group::Replicas);
  return std::gcd(parts.getInt(), replicas * request.getMicroBatches()) / replicas;
}

} // namespace kiln
