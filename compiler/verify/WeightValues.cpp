// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/WeightValues.h"

#include "compiler/dialect/StoredParts.h"
#include "compiler/interpreter/EvaluateOp.h"
#include "compiler/interpreter/Storage.h"
#include "compiler/verify/NodeOf.h"
#include "compiler/verify/Slices.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
namespace kd = mlir::kiln;

namespace kiln::verify {

kd::StorageAttr storageOf(kd::ParameterOp parameter) {
  kd::StorageAttr storage = parameter.getStorageAttr();
  return storage ? storage : kd::getStorage(cast<RankedTensorType>(parameter.getType()));
}

SharedTensor asStored(const SharedTensor &weight, kd::StorageAttr storage) {
  if (!storage)
    return weight;
  std::vector<double> values = weight->values;
  interpreter::roundToStored(
      values, weight->shape,
      {elementTypeOf(storage.getElement()), storage.getDim(), storage.getGroup(), storage.getZero()});
  return std::make_shared<const Tensor>(Tensor::of(weight->element, weight->shape, std::move(values)));
}

static Tensor evaluateFormula(kd::ParameterOp parameter, ArrayAttr formula, const TensorShape &shape,
                              llvm::function_ref<SharedTensor(StringRef source)> weightOf) {
  std::vector<Tensor> stack;
  for (Attribute step : formula) {
    if (auto source = dyn_cast<IntegerAttr>(step)) {
      auto name = cast<StringAttr>(parameter.getSources()[static_cast<unsigned>(source.getInt())]);
      stack.push_back(reshaped(*weightOf(name.getValue()), shape));
      continue;
    }
    if (auto number = dyn_cast<FloatAttr>(step)) {
      stack.push_back(Tensor::of(ElementType::f32, {}, {number.getValueAsDouble()}));
      continue;
    }
    const StringRef name = cast<StringAttr>(step).getValue();
    Node node;
    node.op = llvm::StringSwitch<Op>(name)
                  .Case("add", Op::add)
                  .Case("sub", Op::sub)
                  .Case("mul", Op::mul)
                  .Case("div", Op::div)
                  .Default(Op::sqrt);
    node.element = ElementType::f32;
    const std::size_t count = node.op == Op::sqrt ? 1 : 2;
    std::vector<const Tensor *> operands;
    for (std::size_t i = stack.size() - count; i < stack.size(); ++i)
      operands.push_back(&stack[i]);
    Tensor result = interpreter::evaluateOp(node, operands, shape);
    stack.resize(stack.size() - count);
    stack.push_back(std::move(result));
  }
  return std::move(stack.back());
}

Tensor valueOf(kd::ParameterOp parameter, const TensorShape &shape,
               llvm::function_ref<SharedTensor(StringRef source)> weightOf) {
  if (std::optional<ArrayAttr> formula = parameter.getFormula())
    return evaluateFormula(parameter, *formula, shape, weightOf);
  const auto dim = static_cast<std::size_t>(parameter.getJoinDim());
  const kd::StorageAttr storage = storageOf(parameter);
  std::vector<SharedTensor> parts;
  for (auto [i, source] : llvm::enumerate(parameter.getSources().getAsRange<StringAttr>())) {
    TensorShape part = shape;
    if (auto known = parameter.getSourceExtents())
      part[dim] = (*known)[i];
    const Tensor weight = reshaped(*weightOf(source.getValue()), part);
    parts.push_back(asStored(std::make_shared<const Tensor>(weight), storage));
  }
  return join(parts, dim);
}

} // namespace kiln::verify
