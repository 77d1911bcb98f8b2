// SPDX-License-Identifier: Apache-2.0
#include "compiler/frontend/ImportNode.h"

#include <cmath>
#include <limits>

#include "compiler/dialect/Check.h"

namespace kiln {

using llvm::StringRef;
using mlir::failed;
using mlir::failure;
using mlir::LogicalResult;
using mlir::success;

namespace {

struct Form {
  const char *mnemonic;
  unsigned fewest, most; // operands
};

constexpr unsigned any = std::numeric_limits<unsigned>::max();

/// By Op. Those without a mnemonic are imported by Import.cpp.
constexpr Form forms[] = {{nullptr, 0, 0},
                          {nullptr, 0, 0},
                          {"constant", 0, 0},
                          {"embedding", 2, 2},
                          {"positions", 1, 1},
                          {"sinusoidal", 1, 1},
                          {"linear", 2, 3},
                          {"matmul", 2, 2},
                          {"add", 2, 2},
                          {"sub", 2, 2},
                          {"mul", 2, 2},
                          {"div", 2, 2},
                          {"maximum", 2, 2},
                          {"less", 2, 2},
                          {"where", 3, 3},
                          {"exp", 1, 1},
                          {"log", 1, 1},
                          {"sqrt", 1, 1},
                          {"tanh", 1, 1},
                          {"sigmoid", 1, 1},
                          {"relu", 1, 1},
                          {"gelu", 1, 1},
                          {"gelu_tanh", 1, 1},
                          {"silu", 1, 1},
                          {"softmax", 1, 1},
                          {"log_softmax", 1, 1},
                          {"layer_norm", 3, 3},
                          {"rms_norm", 2, 2},
                          {"conv2d", 2, 3},
                          {"attention", 3, 5},
                          {"attention_scores", 2, 4},
                          {"reshape", 1, 1},
                          {"expand", 1, 1},
                          {"transpose", 1, 1},
                          {"concat", 1, any},
                          {"slice", 1, 1},
                          {"gather", 2, 2},
                          {"mean", 1, 1},
                          {"max", 1, 1},
                          {"sum", 1, 1},
                          {"argmax", 1, 1},
                          {"max_pool2d", 1, 1},
                          {"avg_pool2d", 1, 1},
                          {"resize_bilinear", 1, 1},
                          {nullptr, 1, 1},
                          {nullptr, 1, 1},
                          {nullptr, 1, any},
                          {nullptr, 0, 0},
                          {nullptr, 1, 1},
                          {nullptr, 1, 1},
                          {nullptr, 1, 1}};
static_assert(std::size(forms) == static_cast<std::size_t>(Op::result) + 1);

/// The values as a constant; a single one if all are equal.
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
  double least = width == 1 ? 0 : -std::ldexp(1.0, width - 1), most = width == 1 ? 1 : std::ldexp(1.0, width - 1) - 1;
  llvm::SmallVector<llvm::APInt> stored;
  for (double value : given) {
    if (!(value >= least && value <= most && value == std::trunc(value)))
      return check.fail("constant requires values that its element type holds", std::to_string(value));
    stored.emplace_back(width, static_cast<int64_t>(value), /*isSigned=*/true, /*implicitTrunc=*/true);
  }
  return mlir::DenseElementsAttr::get(type, stored);
}

/// The attributes that the comment of the op in graph.h names.
LogicalResult addAttributes(const Node &node, mlir::OperationState &state, mlir::Builder &builder) {
  const Attributes &from = node.attributes;
  auto add = [&](StringRef name, mlir::Attribute value) { state.addAttribute(name, value); };
  auto addPair = [&](StringRef name, const Pair &pair) {
    add(name, builder.getDenseI64ArrayAttr({pair.height, pair.width}));
  };
  switch (node.op) {
  case Op::slice:
    add("start", builder.getI64IntegerAttr(from.at_end ? 0 : from.start));
    if (from.at_end)
      add("at_end", builder.getUnitAttr());
    [[fallthrough]];
  case Op::positions:
  case Op::softmax:
  case Op::log_softmax:
  case Op::concat:
  case Op::gather:
  case Op::mean:
  case Op::max:
  case Op::sum:
  case Op::argmax:
    add("axis", builder.getI64IntegerAttr(from.axis));
    return success();
  case Op::linear:
    add("weight_order", mlir::kiln::WeightOrderAttr::get(builder.getContext(), from.weight_order == WeightOrder::in_out
                                                                                   ? mlir::kiln::WeightOrder::InOut
                                                                                   : mlir::kiln::WeightOrder::OutIn));
    return success();
  case Op::sinusoidal:
    add("base", builder.getF64FloatAttr(from.base));
    return success();
  case Op::layer_norm:
  case Op::rms_norm:
    add("epsilon", builder.getF64FloatAttr(from.epsilon));
    return success();
  case Op::transpose:
    add("permutation",
        builder.getDenseI64ArrayAttr(llvm::SmallVector<int64_t>(from.permutation.begin(), from.permutation.end())));
    return success();
  case Op::conv2d:
    addPair("stride", from.window.stride);
    addPair("padding", from.window.padding);
    addPair("dilation", from.window.dilation);
    add("groups", builder.getI64IntegerAttr(from.groups));
    return success();
  case Op::max_pool2d:
  case Op::avg_pool2d:
    addPair("kernel", from.window.kernel);
    addPair("stride", from.window.stride);
    addPair("padding", from.window.padding);
    return success();
  case Op::attention:
  case Op::attention_scores: {
    add("heads", builder.getI64IntegerAttr(from.heads));
    if (from.key_value_heads != from.heads)
      add("key_value_heads", builder.getI64IntegerAttr(from.key_value_heads));
    add("scale", builder.getF64FloatAttr(from.scale));
    if (from.causal)
      add("causal", builder.getUnitAttr());
    llvm::SmallVector<int32_t> sizes(node.op == Op::attention ? 3 : 2, 1);
    sizes.append({from.has_mask, from.has_lengths});
    add("operandSegmentSizes", builder.getDenseI32ArrayAttr(sizes));
    return success();
  }
  default:
    return success();
  }
}

} // namespace

mlir::FailureOr<mlir::Value> importNode(const Node &node, mlir::Location location, mlir::ValueRange operands,
                                        mlir::RankedTensorType type, mlir::OpBuilder &builder) {
  const Form &form = forms[static_cast<int>(node.op)];
  mlir::kiln::Check check(location, operands);
  if (node.op == Op::constant) {
    if (!type.hasStaticShape())
      return check.fail("constant requires fixed extents", check.text(type));
    auto values = importValues(node.attributes.values, type, check);
    if (failed(values))
      return failure();
    return mlir::kiln::ConstantOp::create(builder, location, *values).getResult();
  }
  unsigned fewest = form.fewest, most = form.most;
  if (node.op == Op::attention || node.op == Op::attention_scores)
    fewest = most = fewest + node.attributes.has_mask + node.attributes.has_lengths;
  if (operands.size() < fewest || operands.size() > most)
    return check.fail((llvm::Twine(form.mnemonic) + " requires its operands").str(), llvm::Twine(operands.size()),
                      most == any ? "at least " + llvm::Twine(fewest) : llvm::Twine(fewest));
  mlir::OperationState state(location, (llvm::Twine("kiln.") + form.mnemonic).str());
  state.addOperands(operands);
  state.addTypes(type);
  if (failed(addAttributes(node, state, builder)))
    return failure();
  return builder.create(state)->getResult(0);
}

} // namespace kiln
