// SPDX-License-Identifier: Apache-2.0
#include "compiler/frontend/ImportNode.h"

#include <cmath>

#include "compiler/dialect/Check.h"

namespace kiln {

using llvm::StringRef;
using mlir::failed;
using mlir::failure;

namespace {

/// Returns the values as a constant; a splat if all are equal.
mlir::FailureOr<mlir::DenseElementsAttr> importValues(const std::vector<double> &values, mlir::RankedTensorType type,
                                                      const mlir::kiln::Check &check) {
  if (static_cast<int64_t>(values.size()) != type.getNumElements())
    return check.fail(rules::constant_c1, llvm::Twine(values.size()), llvm::Twine(type.getNumElements()));
  mlir::Type element = type.getElementType();
  llvm::ArrayRef<double> given(values);
  if (llvm::all_equal(given))
    given = given.take_front();
  if (auto floating = mlir::dyn_cast<mlir::FloatType>(element)) {
    llvm::SmallVector<llvm::APFloat> stored;
    bool inexact;
    for (double value : given)
      stored.emplace_back(value).convert(floating.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &inexact);
    return mlir::DenseElementsAttr::get(type, stored);
  }
  unsigned width = element.getIntOrFloatBitWidth();
  const ElementInfo &whole = info(*mlir::kiln::toElementType(element));
  auto least = static_cast<double>(whole.least()), most = static_cast<double>(whole.most());
  llvm::SmallVector<llvm::APInt> stored;
  for (double value : given) {
    if (!(value >= least && value <= most && value == std::trunc(value)))
      return check.report("constant: value does not fit the element type; expected one that it holds",
                          std::to_string(value));
    stored.emplace_back(width, static_cast<int64_t>(value), /*isSigned=*/true, /*implicitTrunc=*/true);
  }
  return mlir::DenseElementsAttr::get(type, stored);
}

void addHeads(const Node &node, mlir::OperationState &state, mlir::Builder &builder) {
  const Attributes &from = node.attributes;
  state.addAttribute("heads", builder.getI64IntegerAttr(from.heads));
  if (from.key_value_heads != from.heads)
    state.addAttribute("key_value_heads", builder.getI64IntegerAttr(from.key_value_heads));
  state.addAttribute("scale", builder.getF64FloatAttr(from.scale));
  if (from.causal)
    state.addAttribute("causal", builder.getUnitAttr());
  if (from.window_keys)
    state.addAttribute("window", builder.getI64IntegerAttr(from.window_keys));
  if (from.softcap != 0)
    state.addAttribute("softcap", builder.getF64FloatAttr(from.softcap));
  llvm::SmallVector<int32_t> sizes(info(node.op).fewest, 1);
  sizes.push_back(from.has_mask);
  if (node.op == Op::attention)
    sizes.push_back(from.has_sinks);
  sizes.push_back(from.has_lengths);
  state.addAttribute("operandSegmentSizes", builder.getDenseI32ArrayAttr(sizes));
}

/// Adds the base or the frequencies of pairs.
void addFrequencies(const Attributes &from, mlir::OperationState &state, mlir::Builder &builder) {
  if (from.values.empty())
    state.addAttribute("base", builder.getF64FloatAttr(from.base));
  else
    state.addAttribute("frequencies", builder.getDenseF64ArrayAttr(from.values));
  if (!from.pair_axes.empty())
    state.addAttribute("axes", builder.getDenseI32ArrayAttr(from.pair_axes));
}

/// Adds the attributes with the op's own names.
void addAttributes(const Node &node, mlir::OperationState &state, mlir::Builder &builder) {
  const Attributes &from = node.attributes;
  auto add = [&](Fields field, StringRef name, auto value) {
    if (info(node.op).has(field))
      state.addAttribute(name, value());
  };
  auto addPair = [&](Fields field, StringRef name, const Pair &pair) {
    add(field, name, [&] { return builder.getDenseI64ArrayAttr({pair.height, pair.width}); });
  };
  add(Fields::axis, "axis", [&] { return builder.getI64IntegerAttr(from.axis); });
  add(Fields::start, "start", [&] { return builder.getI64IntegerAttr(from.at_end ? 0 : from.start); });
  if (from.at_end)
    add(Fields::start, "at_end", [&] { return builder.getUnitAttr(); });
  add(Fields::weight_order, "weight_order", [&] {
    return mlir::kiln::WeightOrderAttr::get(builder.getContext(), from.weight_order == WeightOrder::in_out
                                                                      ? mlir::kiln::WeightOrder::InOut
                                                                      : mlir::kiln::WeightOrder::OutIn);
  });
  add(Fields::epsilon, "epsilon", [&] { return builder.getF64FloatAttr(from.epsilon); });
  add(Fields::permutation, "permutation", [&] {
    return builder.getDenseI64ArrayAttr(llvm::SmallVector<int64_t>(from.permutation.begin(), from.permutation.end()));
  });
  addPair(Fields::kernel, "kernel", from.window.kernel);
  addPair(Fields::stride, "stride", from.window.stride);
  addPair(Fields::padding, "padding", from.window.padding);
  addPair(Fields::dilation, "dilation", from.window.dilation);
  add(Fields::groups, "groups", [&] { return builder.getI64IntegerAttr(from.groups); });
  if (info(node.op).has(Fields::base))
    addFrequencies(from, state, builder);
  if (info(node.op).has(Fields::heads))
    addHeads(node, state, builder);
  if (node.op == Op::argsort && from.reverse)
    state.addAttribute("descending", builder.getUnitAttr());
  if (node.op == Op::mean && from.shifted)
    state.addAttribute("shifted", builder.getUnitAttr());
}

} // namespace

mlir::FailureOr<mlir::Value> importNode(const Node &node, mlir::Location location, mlir::ValueRange operands,
                                        mlir::RankedTensorType type, mlir::OpBuilder &builder) {
  const OpInfo &op = info(node.op);
  mlir::kiln::Check check(location, operands);
  if (node.op == Op::constant) {
    if (!type.hasStaticShape())
      return check.report("constant: dynamic dimension; expected a static shape", check.text(type));
    auto values = importValues(node.attributes.values, type, check);
    if (failed(values))
      return failure();
    return mlir::kiln::ConstantOp::create(builder, location, *values).getResult();
  }
  unsigned fewest = op.fewest, most = op.most;
  if (op.has(Fields::heads))
    fewest = most = fewest + node.attributes.has_mask + node.attributes.has_sinks + node.attributes.has_lengths;
  if (operands.size() < fewest || operands.size() > most)
    return check.report((llvm::Twine(op.name) + ": wrong number of operands").str(), llvm::Twine(operands.size()),
                        most == OpInfo::any ? "at least " + llvm::Twine(fewest) : llvm::Twine(fewest));
  mlir::OperationState state(location, (llvm::Twine("kiln.") + op.name).str());
  state.addOperands(operands);
  state.addTypes(type);
  addAttributes(node, state, builder);
  if (node.op == Op::linear) // an optional bias, no scales
    state.addAttribute("operandSegmentSizes", builder.getDenseI32ArrayAttr({1, 1, int32_t(operands.size()) - 2, 0}));
  return builder.create(state)->getResult(0);
}

} // namespace kiln
