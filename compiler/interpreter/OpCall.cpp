// SPDX-License-Identifier: Apache-2.0
#include "compiler/interpreter/OpCall.h"

#include <algorithm>

namespace kiln::interpreter {

Tensor OpCall::result(const TensorShape &implied, ElementType element) const {
  if (implied != shape || element != node.element)
    fail(std::string("wrong result; expected ") + name_of(element) + describe(implied));
  return Tensor::zeros(element, implied);
}

void OpCall::fail(const std::string &problem) const {
  std::string got;
  for (const Tensor *operand : operands)
    got += (got.empty() ? "" : " and ") + describe(*operand);
  throw std::runtime_error(std::string(name_of(node.op)) + ": " + problem + ", got " +
                           (got.empty() ? "no operand" : got) + " for " + name_of(node.element) + describe(shape));
}

void OpCall::requireOperands(std::size_t fewest, std::size_t most) const {
  if (count() < fewest || count() > most)
    fail("wrong number of operands; expected " + std::to_string(fewest) +
         (most == fewest ? "" : " to " + std::to_string(most)));
}
void OpCall::requireSameElements(std::size_t first) const {
  for (std::size_t i = first; i < count(); ++i)
    require(operands[i]->element == operands[first]->element, "element types differ; expected one");
}
void OpCall::requireFloating(std::size_t operand) const {
  require(floating(operands[operand]->element), "wrong element type; expected floating-point operands");
}
void OpCall::requireRank(std::size_t operand, int least) const {
  if (operands[operand]->rank() < least)
    fail("wrong rank; expected " + std::to_string(least) + " or more");
}
void OpCall::requireIntegers(std::size_t operand) const {
  require(operands[operand]->element == ElementType::i32, "wrong element type; expected indices and lengths of i32");
}
int OpCall::axis(std::size_t operand) const {
  const int axis = attributes().axis;
  require(axis >= 0 && axis < operands[operand]->rank(), "axis out of range; expected one within the rank");
  return axis;
}

Lines::Lines(const TensorShape &shape, int axis) {
  for (int i = 0; i < static_cast<int>(shape.size()); ++i)
    (i < axis ? outer : i == axis ? extent : inner) *= shape[i];
}

void advance(TensorShape &index, const TensorShape &shape) {
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (++index[d] < shape[d])
      return;
    index[d] = 0;
  }
}

std::int64_t flatten(const TensorShape &index, const TensorShape &shape) {
  std::int64_t flat = 0;
  for (std::size_t d = 0; d < shape.size(); ++d)
    flat = flat * shape[d] + index[d];
  return flat;
}

bool broadcast(const TensorShape &a, const TensorShape &b, TensorShape &result) {
  result.assign(std::max(a.size(), b.size()), 1);
  for (std::size_t back = 1; back <= result.size(); ++back) {
    const std::int64_t left = back <= a.size() ? a[a.size() - back] : 1;
    const std::int64_t right = back <= b.size() ? b[b.size() - back] : 1;
    if (left != right && left != 1 && right != 1)
      return false;
    result[result.size() - back] = std::max(left, right);
  }
  return true;
}

std::int64_t broadcastOffset(const TensorShape &own, const TensorShape &shape, std::int64_t flat) {
  std::int64_t offset = 0, stride = 1;
  for (std::size_t back = 1; back <= own.size(); ++back) {
    const std::int64_t extent = shape[shape.size() - back], index = flat % extent;
    flat /= extent;
    if (own[own.size() - back] != 1)
      offset += index * stride;
    stride *= own[own.size() - back];
  }
  return offset;
}

} // namespace kiln::interpreter
