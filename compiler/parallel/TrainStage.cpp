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
#include <set>

namespace kiln {

using namespace mlir;
namespace kd = mlir::kiln;

static StringRef roleOf(func::FuncOp function) {
  return function->getAttrOfType<StringAttr>(kd::roleAttrName).getValue();
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
  auto entryOf = [](func::FuncOp function) { return function.getName().drop_back(roleOf(function).size() + 1); };
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

TrainedStages::TrainedStages(ArrayRef<func::FuncOp> roles) : stages(kd::getNumRanks(roles.front(), kd::Group::Stages)) {
  for (func::FuncOp role : roles)
    for (const auto &[name, parameter] : findParameters(role)) {
      const bool isOfLayer = StringRef(name).contains("{}"); // each stage has other layers
      holders[name] = isOfLayer ? 1 : holders[name] + 1;
    }
}

bool TrainedStages::isLast(func::FuncOp function) const { return !areSeveral() || roleOf(function) == "last"; }

int64_t TrainedStages::mostAhead(func::FuncOp function) const {
  for (const kd::StageRole &role : kd::getStageRoles(function->getParentOfType<ModuleOp>()))
    if (role.name == roleOf(function))
      return stages - role.stage;
  return 1;
}

bool TrainedStages::isCounted(func::FuncOp function, StringRef parameter) const {
  return holders.lookup(parameter) < 2 || roleOf(function) == "first";
}

Value TrainedStages::addUp(kd::GradientBuilder &b, func::FuncOp function, StringRef parameter, Value gradient) const {
  const unsigned roles = holders.lookup(parameter);
  if (roles < 2)
    return gradient;
  if (roles > 2)
    return addUp(b, gradient);
  Value other = b.exchange(gradient, kd::Way::Across);
  return roleOf(function) == "first" ? b.add(gradient, other) : b.add(other, gradient);
}

Value TrainedStages::addUp(kd::GradientBuilder &b, Value number) const {
  return areSeveral() ? b.create<kd::AllReduceOp>(number, kd::Group::Stages) : number;
}

} // namespace kiln
