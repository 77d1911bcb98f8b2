// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/WeightValues.h"

#include "compiler/dialect/StoredParts.h"
#include "compiler/interpreter/Storage.h"
#include "compiler/verify/NodeOf.h"
#include "compiler/verify/Slices.h"

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

Tensor valueOf(kd::ParameterOp parameter, const TensorShape &shape,
               llvm::function_ref<SharedTensor(StringRef source)> weightOf) {
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
