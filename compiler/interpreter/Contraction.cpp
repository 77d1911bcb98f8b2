// SPDX-License-Identifier: Apache-2.0
//
// linear: y[..., o] = sum_i x[..., i] weight[o, i] + bias[o].
// grouped_linear: the same with the weight and the bias of the row's group.
// matmul: y[..., m, n] = sum_k a[..., m, k] b[..., k, n], leading dimensions broadcast.
#include "compiler/interpreter/OpCall.h"

namespace kiln::interpreter {
namespace {

Tensor evaluateLinear(const OpCall &call) {
  call.requireOperands(2, 3);
  call.requireFloating();
  call.requireSameElements();
  call.requireRank(0, 1);
  const Tensor &x = call[0], &weight = call[1];
  call.require(weight.rank() == 2, "wrong rank of the weight; expected 2");
  const bool isInOut = call.attributes().weight_order == WeightOrder::in_out;
  const std::int64_t inputs = weight.shape[isInOut ? 0 : 1], outputs = weight.shape[isInOut ? 1 : 0];
  call.require(x.shape.back() == inputs, "wrong width of x; expected the weight's input width");
  call.require(call.count() == 2 || call[2].shape == TensorShape{outputs}, "wrong shape of the bias; expected [out]");
  TensorShape shape = x.shape;
  shape.back() = outputs;
  Tensor result = call.result(shape, x.element);
  const Arithmetic arithmetic(x.element);
  for (std::int64_t row = 0; row < x.size() / inputs; ++row)
    for (std::int64_t o = 0; o < outputs; ++o) {
      Sum sum(arithmetic);
      for (std::int64_t i = 0; i < inputs; ++i)
        sum.addProduct(x.at(row * inputs + i), weight.at(isInOut ? i * outputs + o : o * inputs + i));
      if (call.count() == 3)
        sum.add(call[2].at(o));
      result.set(row * outputs + o, sum.result());
    }
  return result;
}

/// Returns the group of a row: the first one that ends after it, else the last one.
std::int64_t groupOf(std::int64_t row, const Tensor &ends) {
  std::int64_t group = 0;
  while (group + 1 < ends.size() && ends.at(group).value <= static_cast<double>(row))
    ++group;
  return group;
}

Tensor evaluateGroupedLinear(const OpCall &call) {
  call.requireOperands(3, 4);
  call.requireFloating();
  call.requireIntegers(2);
  const Tensor &x = call[0], &weight = call[1], &ends = call[2];
  call.require(weight.element == x.element, "element types differ; expected one");
  call.require(x.rank() == 2 && weight.rank() == 2 && ends.rank() == 1, "wrong ranks; expected 2, 2 and 1");
  const std::int64_t groups = ends.size();
  call.require(groups > 0 && weight.shape[0] % groups == 0,
               "wrong rows of the weight; expected as many for each group");
  const bool isInOut = call.attributes().weight_order == WeightOrder::in_out;
  const std::int64_t each = weight.shape[0] / groups, other = weight.shape[1];
  const std::int64_t inputs = isInOut ? each : other, outputs = isInOut ? other : each;
  call.require(x.shape[1] == inputs, "wrong width of x; expected the weight's input width");
  call.require(call.count() == 3 || (call[3].shape == TensorShape{groups * outputs} && call[3].element == x.element),
               "wrong biases; expected [groups * out]");
  Tensor result = call.result({x.shape[0], outputs}, x.element);
  const Arithmetic arithmetic(x.element);
  bool isDetermined = true;
  for (std::int64_t group = 0; group < groups; ++group)
    isDetermined &= ends.at(group).isDetermined();
  for (std::int64_t row = 0; row < x.shape[0]; ++row) {
    const std::int64_t group = groupOf(row, ends);
    for (std::int64_t o = 0; o < outputs; ++o) {
      Sum sum(arithmetic);
      for (std::int64_t i = 0; i < inputs; ++i)
        sum.addProduct(x.at(row * inputs + i),
                       weight.at(isInOut ? (group * inputs + i) * outputs + o : (group * outputs + o) * inputs + i));
      if (call.count() == 4)
        sum.add(call[3].at(group * outputs + o));
      const Value value = sum.result();
      result.set(row * outputs + o, isDetermined ? value : undetermined(value.value));
    }
  }
  return result;
}

Tensor evaluateMatmul(const OpCall &call) {
  call.requireOperands(2, 2);
  call.requireFloating();
  call.requireSameElements();
  call.requireRank(0, 2);
  call.requireRank(1, 2);
  const Tensor &a = call[0], &b = call[1];
  const std::int64_t rows = a.shape[a.rank() - 2], inner = a.shape.back(), columns = b.shape.back();
  call.require(b.shape[b.rank() - 2] == inner, "inner dimensions differ; expected equal ones");
  const TensorShape left(a.shape.begin(), a.shape.end() - 2), right(b.shape.begin(), b.shape.end() - 2);
  TensorShape batch;
  call.require(broadcast(left, right, batch), "leading dimensions differ; expected equal ones or 1");
  TensorShape shape = batch;
  shape.push_back(rows);
  shape.push_back(columns);
  Tensor result = call.result(shape, a.element);
  const Arithmetic arithmetic(a.element);
  for (std::int64_t i = 0; i < elementCount(batch); ++i) {
    const std::int64_t ofA = broadcastOffset(left, batch, i), ofB = broadcastOffset(right, batch, i);
    for (std::int64_t m = 0; m < rows; ++m)
      for (std::int64_t n = 0; n < columns; ++n) {
        Sum sum(arithmetic);
        for (std::int64_t k = 0; k < inner; ++k)
          sum.addProduct(a.at((ofA * rows + m) * inner + k), b.at((ofB * inner + k) * columns + n));
        result.set((i * rows + m) * columns + n, sum.result());
      }
  }
  return result;
}

} // namespace

Tensor evaluateContraction(const OpCall &call) {
  switch (call.node.op) {
  case Op::linear:
    return evaluateLinear(call);
  case Op::grouped_linear:
    return evaluateGroupedLinear(call);
  default:
    return evaluateMatmul(call);
  }
}

} // namespace kiln::interpreter
