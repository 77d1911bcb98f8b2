// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/NodeOf.h"

#include <stdexcept>

#include "compiler/dialect/KilnDialect.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
namespace kd = mlir::kiln;

namespace kiln::verify {

ElementType elementTypeOf(Type type) {
  if (auto element = kd::toElementType(type))
    return *element;
  throw std::runtime_error("tensor: unknown element type; expected one of the language");
}

/// Whether the op is evaluated from its operands. The caller handles sources such as constants, loops and states.
static bool isEvaluatedAlone(Op op) {
  const Family family = family_of(op);
  return family != Family::source && family != Family::loop && family != Family::state;
}

/// Reads the attributes that have the same names in all ops.
static void readCommon(Operation *op, Attributes &to) {
  auto integer = [&](StringRef name) { return op->getAttrOfType<IntegerAttr>(name).getInt(); };
  auto pair = [&](StringRef name, Pair &pair) {
    if (auto values = op->getAttrOfType<DenseI64ArrayAttr>(name))
      pair = Pair(static_cast<int>(values[0]), static_cast<int>(values[1]));
  };
  if (op->hasAttr("axis"))
    to.axis = static_cast<int>(integer("axis"));
  if (op->hasAttr("start"))
    to.start = integer("start");
  if (op->hasAttr("groups"))
    to.groups = static_cast<int>(integer("groups"));
  to.at_end = op->hasAttr("at_end");
  to.reverse = op->hasAttr("reverse");
  to.shifted = op->hasAttr("shifted");
  if (auto epsilon = op->getAttrOfType<FloatAttr>("epsilon"))
    to.epsilon = epsilon.getValueAsDouble();
  pair("kernel", to.window.kernel);
  pair("stride", to.window.stride);
  pair("padding", to.window.padding);
  pair("dilation", to.window.dilation);
}

template <class AttentionLike> static void readHeads(AttentionLike op, Attributes &to) {
  to.heads = static_cast<int>(op.getHeads());
  to.key_value_heads = static_cast<int>(op.getNumKeyValueHeads());
  to.scale = op.getScale().convertToDouble();
  to.causal = op.getCausal();
  to.window_keys = static_cast<std::int64_t>(op.getWindow().value_or(0));
  to.softcap = op.getSoftcap() ? op.getSoftcap()->convertToDouble() : 0;
  to.has_mask = op.getMask() != nullptr;
  to.has_lengths = op.getLengths() != nullptr;
}

std::optional<Node> nodeOf(Operation *op) {
  if (!isa_and_nonnull<kd::KilnDialect>(op->getDialect()) || op->getNumResults() != 1)
    return std::nullopt;
  StringRef name = op->getName().stripDialect();
  Node node;
  node.op = find_op(std::string_view(name.data(), name.size()));
  if (!is_known(node.op) || !isEvaluatedAlone(node.op))
    return std::nullopt;
  node.element = elementTypeOf(getElementTypeOrSelf(op->getResult(0).getType()));
  Attributes &attributes = node.attributes;
  readCommon(op, attributes);
  if (auto linear = dyn_cast<kd::LinearOp>(op))
    attributes.weight_order = linear.getOutputDim() == 0 ? WeightOrder::out_in : WeightOrder::in_out;
  if (auto grouped = dyn_cast<kd::GroupedLinearOp>(op))
    attributes.weight_order =
        grouped.getWeightOrder() == kd::WeightOrder::OutIn ? WeightOrder::out_in : WeightOrder::in_out;
  if (auto sinusoidal = dyn_cast<kd::SinusoidalOp>(op)) {
    attributes.base = sinusoidal.getBase().convertToDouble();
    attributes.values.assign(sinusoidal.getFrequencies().begin(), sinusoidal.getFrequencies().end());
    attributes.pair_axes.assign(sinusoidal.getAxes().begin(), sinusoidal.getAxes().end());
  }
  if (auto sort = dyn_cast<kd::ArgsortOp>(op))
    attributes.reverse = sort.getDescending();
  if (auto transpose = dyn_cast<kd::TransposeOp>(op))
    attributes.permutation.assign(transpose.getPermutation().begin(), transpose.getPermutation().end());
  if (auto attention = dyn_cast<kd::AttentionOp>(op)) {
    readHeads(attention, attributes);
    attributes.has_sinks = attention.getSinks() != nullptr;
  }
  if (auto scores = dyn_cast<kd::AttentionScoresOp>(op))
    readHeads(scores, attributes);
  return node;
}

} // namespace kiln::verify
