// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/Slices.h"

#include "compiler/interpreter/EvaluateOp.h"

namespace kiln::verify {

Tensor takeRange(const Tensor &x, int axis, std::int64_t start, std::int64_t extent) {
  Node node;
  node.op = Op::slice;
  node.element = x.element;
  node.attributes.axis = axis;
  node.attributes.start = start;
  TensorShape shape = x.shape;
  shape[axis] = extent;
  const Tensor *operand = &x;
  return interpreter::evaluateOp(node, {&operand, 1}, shape);
}

Tensor reshaped(const Tensor &x, const TensorShape &shape) {
  if (interpreter::elementCount(shape) != x.size())
    throw std::runtime_error("view: number of elements differs; expected as many, got " + interpreter::describe(x) +
                             " for " + interpreter::describe(shape));
  return {x.element, shape, x.values, x.errors};
}

Tensor takeStep(const Tensor &x, std::int64_t step) {
  return reshaped(takeRange(x, 0, step, 1), {x.shape.begin() + 1, x.shape.end()});
}

Tensor join(const std::vector<SharedTensor> &parts, std::size_t axis) {
  if (parts.size() == 1)
    return *parts[0];
  Node node;
  node.op = Op::concat;
  node.element = parts[0]->element;
  node.attributes.axis = static_cast<int>(axis);
  TensorShape shape = parts[0]->shape;
  shape[axis] = 0;
  std::vector<const Tensor *> operands;
  for (const SharedTensor &part : parts) {
    operands.push_back(part.get());
    shape[axis] += part->shape[axis];
  }
  return interpreter::evaluateOp(node, operands, shape);
}

Tensor stack(const std::vector<SharedTensor> &slices) {
  TensorShape shape = slices[0]->shape;
  shape.insert(shape.begin(), static_cast<std::int64_t>(slices.size()));
  Tensor stacked = Tensor::zeros(slices[0]->element, shape);
  std::int64_t flat = 0;
  for (const SharedTensor &slice : slices)
    for (std::int64_t i = 0; i < slice->size(); ++i)
      stacked.set(flat++, slice->at(i));
  return stacked;
}

} // namespace kiln::verify
