// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/EvaluateKilnOp.h"

#include <algorithm>
#include <cmath>

#include "compiler/dialect/KilnDialect.h"
#include "compiler/interpreter/Arithmetic.h"
#include "compiler/interpreter/EvaluateOp.h"
#include "compiler/interpreter/Philox.h"
#include "compiler/interpreter/QuantizeRows.h"
#include "compiler/verify/NodeOf.h"
#include "compiler/verify/StandIn.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
namespace kd = mlir::kiln;

namespace kiln::verify {

using interpreter::evaluateOp;

static Tensor evaluate(Op op, ElementType element, ArrayRef<const Tensor *> operands, const TensorShape &shape,
                       Attributes attributes = {}) {
  Node node;
  node.op = op;
  node.element = element;
  node.attributes = std::move(attributes);
  return evaluateOp(node, std::span(operands.data(), operands.size()), shape);
}

/// Evaluates an all-reduce where all ranks have the same value: the sum is the value times the number of ranks.
static Tensor evaluateSum(const Tensor &x, const TensorShape &shape, int64_t ranks) {
  const Tensor count = Tensor::of(x.element, {}, {static_cast<double>(ranks)});
  return evaluate(Op::mul, x.element, {&x, &count}, shape);
}

/// Evaluates an all-gather where all ranks have the same value: the result repeats it along a new first axis.
static Tensor evaluateParts(const Tensor &x, const TensorShape &shape) {
  Attributes first;
  first.axis = 0;
  TensorShape one = x.shape;
  one.insert(one.begin(), 1);
  const Tensor part = evaluate(Op::reshape, x.element, &x, one);
  const std::vector<const Tensor *> parts(static_cast<std::size_t>(shape[0]), &part);
  return evaluate(Op::concat, x.element, parts, shape, first);
}

/// Evaluates a reduce-scatter for the first rank: its part of the sum over all ranks.
static Tensor evaluateFirst(const Tensor &x, const TensorShape &shape, int64_t ranks) {
  Attributes first;
  first.axis = 0;
  TensorShape one = x.shape;
  one[0] = 1;
  const Tensor part = evaluate(Op::slice, x.element, {&x}, one, first),
               own = evaluate(Op::reshape, x.element, &part, shape);
  return evaluateSum(own, shape, ranks);
}

/// Makes up values that another pipeline stage might send: numbers around 0 that differ between elements. Gradients are
/// small, so that weights stay small.
static std::vector<Tensor> evaluateReceived(kd::ReceiveOp receive, ArrayRef<TensorShape> shapes) {
  const double size = receive.getWay() == kd::Way::Onward ? 1 : 0x1p-10;
  std::vector<Tensor> received;
  for (auto [value, shape] : llvm::zip_equal(receive.getValues(), shapes)) {
    const ElementType element = elementTypeOf(cast<RankedTensorType>(value.getType()).getElementType());
    std::vector<double> numbers(static_cast<std::size_t>(interpreter::elementCount(shape)));
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = element == ElementType::boolean ? double(i % 2) : (double(i * 7919 % 257) / 128 - 1) * size;
    if (!floating(element))
      for (double &number : numbers)
        number = std::trunc(std::abs(number));
    received.push_back(Tensor::of(element, shape, std::move(numbers)));
  }
  return received;
}

static Tensor transposeLast(const Tensor &x) {
  Attributes attributes;
  for (int axis = 0; axis < x.rank(); ++axis)
    attributes.permutation.push_back(axis);
  TensorShape shape = x.shape;
  if (x.rank() < 2)
    throw std::runtime_error("matmul: wrong rank; expected operands of rank 2 or more");
  std::swap(attributes.permutation.end()[-1], attributes.permutation.end()[-2]);
  std::swap(shape.end()[-1], shape.end()[-2]);
  return evaluate(Op::transpose, x.element, &x, shape, std::move(attributes));
}

/// Evaluates sin of a position times the frequency and phase of a column of the table; the bound is that of
/// kiln.sinusoidal.
static interpreter::Value evaluateSinusoid(interpreter::Value position, const Tensor &table, std::int64_t column,
                                           bool isWhole) {
  auto entry = [&](std::int64_t row) {
    return static_cast<std::int32_t>(table.values[static_cast<std::size_t>(row * table.shape[1] + column)]);
  };
  auto number = [&](std::int64_t row) { return static_cast<double>(llvm::bit_cast<float>(entry(row))); };
  if (!isWhole && !(std::abs(position.value) < 0x1p31))
    return position.error == 0 ? interpreter::exact(std::nan("")) : interpreter::undetermined();
  const auto whole = static_cast<std::int64_t>(position.value);
  const auto units = static_cast<std::uint32_t>(whole * entry(0) + entry(2)); // of 2^-32 turns, wrapped
  double turns = 0x1p-32 * (static_cast<double>(units) + static_cast<double>(whole) * number(1));
  double error = interpreter::sinusoidalError(whole);
  if (!isWhole) {
    turns += (position.value - static_cast<double>(whole)) * number(3);
    error += 2 * M_PI * number(3) * (0x1p-22 + position.error);
  }
  const double value = std::sin(2 * M_PI * turns);
  if (!position.isDetermined() || (!isWhole && std::abs(position.value) + position.error >= 0x1p31))
    return interpreter::undetermined(value);
  return {value, error};
}

static Tensor evaluateSinusoids(const Tensor &positions, const Tensor &table, const TensorShape &shape) {
  const bool isWhole = positions.element == ElementType::i32;
  const std::int64_t fewest = isWhole ? 3 : 4;
  if (table.rank() != 2 || (table.shape[0] != fewest && table.shape[0] != fewest + 1))
    throw std::runtime_error("sinusoid: wrong table; expected a row for each of its parts");
  const bool hasAxes = table.shape[0] > fewest;
  const std::int64_t width = table.shape[1], count = positions.size() / (hasAxes ? positions.shape[0] : 1);
  if (interpreter::elementCount(shape) != count * width)
    throw std::runtime_error("sinusoid: wrong shape; expected a row for each position");
  Tensor result = Tensor::zeros(ElementType::f32, shape);
  for (std::int64_t t = 0; t < count; ++t)
    for (std::int64_t c = 0; c < width; ++c) {
      const std::int64_t axis =
          hasAxes ? static_cast<std::int64_t>(table.values[static_cast<std::size_t>(fewest * width + c)]) : 0;
      result.set(t * width + c, evaluateSinusoid(positions.at(axis * count + t), table, c, isWhole));
    }
  return result;
}

/// Evaluates (1 + erf(x / sqrt(2))) / 2, whose slope is at most 0.4. For large negative x this is a difference of
/// numbers near 1/2.
static Tensor evaluateNormalCdf(const Tensor &x) {
  const interpreter::Arithmetic arithmetic(x.element);
  Tensor result = Tensor::zeros(x.element, x.shape);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const interpreter::Value at = x.at(i);
    const double value = std::erfc(-at.value / M_SQRT2) / 2;
    result.set(i, at.isDetermined() ? arithmetic.settle(value, 0.4 * at.error + arithmetic.function)
                                    : interpreter::undetermined(value));
  }
  return result;
}

/// Each row of the result is a separate sum.
static Tensor evaluateScatterAdd(const Tensor &indices, const Tensor &rows, const TensorShape &shape) {
  const interpreter::Arithmetic arithmetic(ElementType::f32);
  const std::int64_t width = shape[1];
  Tensor result = Tensor::zeros(ElementType::f32, shape);
  for (std::int64_t v = 0; v < shape[0]; ++v)
    for (std::int64_t c = 0; c < width; ++c) {
      interpreter::Sum sum(arithmetic);
      bool isDetermined = true;
      for (std::int64_t r = 0; r < indices.size(); ++r) {
        isDetermined &= indices.at(r).isDetermined();
        if (std::clamp<std::int64_t>(static_cast<std::int64_t>(indices.values[r]), 0, shape[0] - 1) == v)
          sum.add(rows.at(r * width + c));
      }
      const interpreter::Value total = sum.result();
      result.set(v * width + c, isDetermined ? total : interpreter::undetermined(total.value));
    }
  return result;
}

static Tensor evaluateDropout(kd::DropoutOp op, ArrayRef<const Tensor *> operands) {
  auto integer = [&](const Tensor &x) { return static_cast<std::uint32_t>(static_cast<std::int64_t>(x.values[0])); };
  const Tensor &x = *operands[0];
  const interpreter::DropoutPlace place{integer(*operands[1]), integer(*operands[2]),
                                        static_cast<std::uint32_t>(op.getStream()),
                                        op.getIteration() ? integer(*operands[3]) : 0};
  const double probability = op.getProbability().convertToDouble();
  const interpreter::Arithmetic arithmetic(x.element);
  Tensor result = Tensor::zeros(x.element, x.shape);
  for (std::int64_t i = 0; i < x.size(); ++i)
    if (!place.drops(static_cast<std::uint32_t>(i), probability)) {
      const interpreter::Value at = x.at(i);
      const double larger = 1 / (1 - probability), value = at.value * larger;
      result.set(i, at.isDetermined()
                        ? arithmetic.settle(value, at.error * larger + 2 * arithmetic.unit * std::abs(value))
                        : interpreter::undetermined(value));
    }
  return result;
}

/// Evaluates a matrix product of integers, times the scale of each row, plus the bias.
static Tensor evaluateScaledLinear(kd::LinearOp op, ArrayRef<const Tensor *> operands, const TensorShape &shape) {
  Node node = *nodeOf(op);
  const Tensor &scales = *operands.back();
  Tensor numbers = *operands[0];
  numbers.element = scales.element;
  TensorShape rows = scales.shape;
  rows.push_back(1);
  const Tensor *factors[] = {&numbers, operands[1]};
  const Tensor product = evaluateOp(node, factors, shape);
  const Tensor column = evaluate(Op::reshape, scales.element, &scales, rows);
  const Tensor scaled = evaluate(Op::mul, scales.element, {&product, &column}, shape);
  return op.getBias() ? evaluate(Op::add, scales.element, {&scaled, operands[2]}, shape) : scaled;
}

std::vector<Tensor> evaluateKilnOp(Operation *op, ArrayRef<const Tensor *> operands, ArrayRef<TensorShape> shapes) {
  if (isa<kd::SinusoidOp>(op))
    return {evaluateSinusoids(*operands[0], *operands[1], shapes[0])};
  if (isa<kd::NormalCdfOp>(op))
    return {evaluateNormalCdf(*operands[0])};
  if (auto dropout = dyn_cast<kd::DropoutOp>(op))
    return {evaluateDropout(dropout, operands)};
  if (auto custom = dyn_cast<kd::CustomOp>(op)) {
    auto elements = llvm::map_to_vector(
        op->getResultTypes(), [](Type type) { return elementTypeOf(cast<RankedTensorType>(type).getElementType()); });
    return evaluateStandIn(custom.getFunction(), operands, elements, shapes);
  }
  if (isa<kd::ScatterAddOp>(op))
    return {evaluateScatterAdd(*operands[0], *operands[1], shapes[0])};
  if (isa<kd::AllReduceOp>(op))
    return {evaluateSum(*operands[0], shapes[0], kd::getNumRanks(op, cast<kd::AllReduceOp>(op).getOver()))};
  if (auto begin = dyn_cast<kd::BeginReduceOp>(op))
    return {evaluateSum(*operands[0], shapes[0], kd::getNumRanks(op, begin.getOver()))};
  if (isa<kd::FinishOp>(op)) {
    std::vector<Tensor> finished;
    for (const Tensor *operand : operands)
      finished.push_back(*operand);
    return finished;
  }
  if (auto receive = dyn_cast<kd::ReceiveOp>(op))
    return evaluateReceived(receive, shapes);
  if (isa<kd::RunningAverageOp, kd::StopGradientOp, kd::ToRanksOp>(op))
    return {*operands[0]};
  if (isa<kd::RankOp>(op))
    return {Tensor::of(ElementType::i32, {}, {0})};
  if (auto scatter = dyn_cast<kd::ReduceScatterOp>(op))
    return {evaluateFirst(*operands[0], shapes[0], kd::getNumRanks(op, scatter.getOver()))};
  if (isa<kd::AllGatherOp>(op))
    return {evaluateParts(*operands[0], shapes[0])};
  if (isa<kd::RowScalesOp>(op))
    return {interpreter::rowScales(*operands[0])};
  if (isa<kd::QuantizeRowsOp>(op))
    return {interpreter::quantizeRows(*operands[0], *operands[1])};
  if (auto linear = dyn_cast<kd::LinearOp>(op); linear && linear.getScales())
    return {evaluateScaledLinear(linear, operands, shapes[0])};
  std::optional<Node> node = nodeOf(op);
  if (!node)
    throw std::runtime_error(op->getName().getStringRef().str() + " is not evaluated");
  if (auto matmul = dyn_cast<kd::MatmulOp>(op); matmul && matmul.getTransposeB()) {
    const Tensor transposed = transposeLast(*operands[1]);
    const Tensor *both[] = {operands[0], &transposed};
    return {evaluateOp(*node, both, shapes[0])};
  }
  return {evaluateOp(*node, std::span(operands.data(), operands.size()), shapes[0])};
}

Tensor tensorOf(ElementsAttr values) {
  auto dense = dyn_cast<DenseElementsAttr>(values);
  if (!dense)
    throw std::runtime_error("constant: no elements; expected them in the attribute");
  auto type = cast<RankedTensorType>(dense.getType());
  const ElementType element = elementTypeOf(type.getElementType());
  std::vector<double> numbers;
  numbers.reserve(static_cast<std::size_t>(type.getNumElements()));
  if (isa<FloatType>(type.getElementType()))
    for (const APFloat &value : dense.getValues<APFloat>()) {
      APFloat number = value;
      bool isInexact = false;
      number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &isInexact);
      numbers.push_back(number.convertToDouble());
    }
  else
    for (const APInt &value : dense.getValues<APInt>())
      numbers.push_back(value.getBitWidth() == 1 ? static_cast<double>(value.getZExtValue())
                                                 : static_cast<double>(value.getSExtValue()));
  return Tensor::of(element, {type.getShape().begin(), type.getShape().end()}, std::move(numbers));
}

} // namespace kiln::verify
