// SPDX-License-Identifier: Apache-2.0
//
// Data movement ops: reshape, expand, transpose, concat, slice, dropout, stop_gradient and running_average. An element
// keeps its bound.
#include <algorithm>

#include "compiler/interpreter/OpCall.h"

namespace kiln::interpreter {
namespace {

Tensor evaluateReshape(const OpCall &call) {
  const Tensor &x = call[0];
  call.require(elementCount(call.shape) == x.size(), "number of elements differs; expected as many as before");
  Tensor result = call.result(call.shape, x.element);
  result.values = x.values;
  result.errors = x.errors;
  return result;
}

Tensor evaluateExpand(const OpCall &call) {
  const Tensor &x = call[0];
  TensorShape shape;
  call.require(broadcast(x.shape, call.shape, shape) && shape == call.shape,
               "wrong shape; expected one to which it broadcasts");
  Tensor result = call.result(shape, x.element);
  for (std::int64_t i = 0; i < result.size(); ++i)
    result.set(i, x.at(broadcastOffset(x.shape, shape, i)));
  return result;
}

/// Axis i of the result is axis permutation[i] of x.
Tensor evaluateTranspose(const OpCall &call) {
  const Tensor &x = call[0];
  const std::vector<int> &permutation = call.attributes().permutation;
  std::vector<int> sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  bool isPermutation = static_cast<int>(sorted.size()) == x.rank();
  for (int i = 0; isPermutation && i < x.rank(); ++i)
    isPermutation = sorted[i] == i;
  call.require(isPermutation, "wrong permutation; expected one of the axes");
  TensorShape shape;
  for (int axis : permutation)
    shape.push_back(x.shape[axis]);
  Tensor result = call.result(shape, x.element);
  TensorShape index(shape.size(), 0), source(shape.size(), 0);
  for (std::int64_t flat = 0; flat < result.size(); ++flat, advance(index, shape)) {
    for (std::size_t i = 0; i < shape.size(); ++i)
      source[permutation[i]] = index[i];
    result.set(flat, x.at(flatten(source, x.shape)));
  }
  return result;
}

Tensor evaluateConcat(const OpCall &call) {
  call.require(call.count() >= 1, "no operand; expected at least one");
  call.requireSameElements();
  const int axis = call.axis();
  TensorShape shape = call[0].shape;
  shape[axis] = 0;
  for (const Tensor *part : call.operands) {
    TensorShape others = part->shape;
    call.require(part->rank() == call[0].rank(), "ranks differ; expected one");
    others[axis] = call[0].shape[axis];
    call.require(others == call[0].shape, "dimensions differ; expected equal ones except along the axis");
    shape[axis] += part->shape[axis];
  }
  Tensor result = call.result(shape, call[0].element);
  const Lines to(shape, axis);
  std::int64_t begin = 0;
  for (const Tensor *part : call.operands) {
    const Lines from(part->shape, axis);
    for (std::int64_t o = 0; o < from.outer; ++o)
      for (std::int64_t k = 0; k < from.extent; ++k)
        for (std::int64_t i = 0; i < from.inner; ++i)
          result.set(to.at(o, begin + k, i), part->at(from.at(o, k, i)));
    begin += from.extent;
  }
  return result;
}

/// Returns the elements [start, start + extent) of the axis, or the last ones.
Tensor evaluateSlice(const OpCall &call) {
  const Tensor &x = call[0];
  const int axis = call.axis();
  call.require(call.shape.size() == x.shape.size(), "wrong rank of the result; expected the same");
  TensorShape shape = x.shape;
  shape[axis] = call.shape[axis];
  const std::int64_t start = call.attributes().at_end ? x.shape[axis] - shape[axis] : call.attributes().start;
  call.require(start >= 0 && start <= x.shape[axis] && shape[axis] <= x.shape[axis] - start,
               "range leaves the operand; expected elements that exist");
  Tensor result = call.result(shape, x.element);
  const Lines from(x.shape, axis), to(shape, axis);
  for (std::int64_t o = 0; o < to.outer; ++o)
    for (std::int64_t k = 0; k < to.extent; ++k)
      for (std::int64_t i = 0; i < to.inner; ++i)
        result.set(to.at(o, k, i), x.at(from.at(o, start + k, i)));
  return result;
}

Tensor evaluateIdentity(const OpCall &call) {
  Tensor result = call.result(call[0].shape, call[0].element);
  result.values = call[0].values;
  result.errors = call[0].errors;
  return result;
}

} // namespace

Tensor evaluateMovement(const OpCall &call) {
  if (call.node.op == Op::concat)
    return evaluateConcat(call);
  const unsigned operands = info(call.node.op).fewest;
  call.requireOperands(operands, operands);
  switch (call.node.op) {
  case Op::reshape:
    return evaluateReshape(call);
  case Op::expand:
    return evaluateExpand(call);
  case Op::transpose:
    return evaluateTranspose(call);
  case Op::slice:
    return evaluateSlice(call);
  default:
    return evaluateIdentity(call);
  }
}

} // namespace kiln::interpreter
