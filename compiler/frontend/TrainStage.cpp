// SPDX-License-Identifier: Apache-2.0
//
// A parameter that is no layer's may be on both ends, or, if all layers read what is computed of it, on all stages.
// Each has a part of its gradient then:
//
//   kiln.send going across %dw                  from end to end
//   %other = kiln.receive going across
//   %sum = kiln.add %first, %last               in this order on both
#include "compiler/frontend/TrainStage.h"

#include "compiler/transforms/CutStages.h"

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

static StringRef roleOf(func::FuncOp function) {
  return function->getAttrOfType<StringAttr>(kd::roleAttrName).getValue();
}

TrainedStages::TrainedStages(ArrayRef<func::FuncOp> roles, int64_t stages) : stages(stages) {
  for (func::FuncOp role : roles)
    for (const auto &[name, parameter] : findParameters(role)) {
      const bool isOfLayer = StringRef(name).contains("{}"); // other ones on each stage
      holders[name] = isOfLayer ? 1 : holders[name] + 1;
    }
}

bool TrainedStages::isLast(func::FuncOp function) const { return !areSeveral() || roleOf(function) == "last"; }

int64_t TrainedStages::mostAhead(func::FuncOp function) const {
  return roleOf(function) == "first" ? stages : stages - 1;
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
