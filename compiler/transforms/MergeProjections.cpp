// SPDX-License-Identifier: Apache-2.0
//
// 1. The linears that an attention reads, directly or as rows of a state, of fewer bits perhaps, or that are kept for
// one
//    of another entry: they are collected by the value that they project.
// 2. Two or more of one value, order and kind of bias become one, at the place of the first.
#include "compiler/transforms/Passes.h"

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::kiln {

#define GEN_PASS_DEF_MERGEPROJECTIONS
#include "compiler/transforms/Passes.h.inc"

namespace {

/// A parameter that only this linear uses and that is stored plainly.
ParameterOp getOwnParameter(Value value, LinearOp linear) {
  auto parameter = value.getDefiningOp<ParameterOp>();
  return parameter && value.hasOneUse() && parameter->getBlock() == linear->getBlock() &&
                 !cast<RankedTensorType>(value.getType()).getEncoding()
             ? parameter
             : ParameterOp();
}

/// The parameters one after another along `dim`.
Value joinParameters(OpBuilder &builder, ArrayRef<ParameterOp> parameters, int64_t dim) {
  SmallVector<Attribute> sources;
  SmallVector<int64_t> extents;
  auto first = cast<RankedTensorType>(parameters[0]->getResult(0).getType());
  SmallVector<int64_t> shape(first.getShape());
  shape[dim] = 0;
  for (ParameterOp parameter : parameters) {
    int64_t extent = cast<RankedTensorType>(parameter.getType()).getDimSize(dim);
    llvm::append_range(sources, parameter.getSources());
    if (auto known = parameter.getSourceExtents())
      llvm::append_range(extents, *known);
    else
      extents.push_back(extent);
    shape[dim] += extent;
  }
  auto type = RankedTensorType::get(shape, first.getElementType());
  ParameterOp front = parameters.front();
  return ParameterOp::create(builder, front.getLoc(), type, builder.getArrayAttr(sources), front.getCopies(),
                             builder.getDenseI64ArrayAttr(extents), dim,
                             llvm::any_of(parameters, [](ParameterOp parameter) { return parameter.getVariable(); }),
                             front.getStorageAttr());
}

/// The rows of a state that attention reads, widened and moved.
AppendOp keptRows(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto append = dyn_cast<AppendOp>(op))
      return append;
    if (!isDecoding(op) && !hasRole(op, KernelRole::Movement))
      break;
    value = op->getOperand(0);
  }
  return {};
}

/// Linears that can be one.
using Projections = llvm::SmallSetVector<LinearOp, 4>;

/// What a slice of a kiln.each_sequence is of; any other value itself.
Value getOutside(Value value) {
  auto slice = dyn_cast<BlockArgument>(value);
  auto loop = slice ? dyn_cast<EachSequenceOp>(slice.getOwner()->getParentOp()) : EachSequenceOp();
  return loop ? loop.getWholes()[slice.getArgNumber()] : value;
}

/// The block that the operands of ops in this one may be computed in.
Block *getOutside(Block *block) {
  return isa<EachSequenceOp>(block->getParentOp()) ? block->getParentOp()->getBlock() : block;
}

/// What rows of a state are made of, where these are of fewer bits.
Value projected(Value rows) {
  rows = getOutside(rows);
  auto rounded = rows.getDefiningOp<CastOp>();
  return rounded ? rounded.getX() : rows;
}

/// Whether all that follows from the use is rows of states, or with `orAttention` these and attention.
bool isKept(OpOperand &use, bool orAttention) {
  Operation *user = use.getOwner();
  auto all = [](Value value, bool orAttention) {
    return llvm::all_of(value.getUses(), [&](OpOperand &next) { return isKept(next, orAttention); });
  };
  if (auto loop = dyn_cast<EachSequenceOp>(user))
    return all(loop.getBody().getArgument(use.getOperandNumber()), orAttention);
  if (auto rounded = dyn_cast<CastOp>(user))
    return all(rounded, false);
  return isa<AppendOp>(user) || (orAttention && isa<AttentionOp, AttentionScoresOp>(user));
}

struct MergeProjections : impl::MergeProjectionsBase<MergeProjections> {
  using MergeProjectionsBase::MergeProjectionsBase;

  void runOnOperation() override {
    for (auto entry : getOperation().getOps<func::FuncOp>())
      collect(entry);
    dropUnlike();
    for (const Projections &linears : groups)
      merge(linears.getArrayRef());
  }

private:
  void collect(func::FuncOp entry) {
    SmallVector<AttentionOp> attentions;
    SmallVector<AppendOp> appends;
    entry.walk([&](AttentionOp op) { attentions.push_back(op); });
    entry.walk([&](AppendOp op) { appends.push_back(op); });
    for (AttentionOp attention : attentions) {
      SmallVector<Value> operands{attention.getQuery(), attention.getKey(), attention.getValue()};
      for (Value &operand : operands)
        if (auto append = keptRows(operand)) {
          llvm::erase(appends, append);
          operand = projected(append.getX());
        }
      llvm::transform(operands, operands.begin(), [](Value operand) { return getOutside(operand); });
      collectAmong(operands, getOutside(attention->getBlock()));
    }
    // What an attention of another entry reads, a layer's states: joined there, so joined here.
    llvm::MapVector<std::pair<Block *, StringRef>, SmallVector<Value>> others;
    for (AppendOp append : appends)
      others[{getOutside(append->getBlock()), append.getName().rsplit('.').first}].push_back(projected(append.getX()));
    for (auto &[owner, operands] : others)
      collectAmong(operands, owner.first);
  }

  /// In the order of the values, which may be one value more than once; x, order, kind of bias and storage tell which
  /// linears can be one. A linear is in one group.
  void collectAmong(ArrayRef<Value> values, Block *block) {
    llvm::MapVector<std::tuple<Value, int, int, Attribute>, Projections> mergeable;
    for (Value value : values)
      if (auto linear = value.getDefiningOp<LinearOp>();
          linear && canMerge(linear, block) &&
          llvm::none_of(groups, [&](const Projections &group) { return group.contains(linear); }))
        mergeable[{linear.getX(), int(linear.getOutputDim()), linear.getBias() ? 1 : 0,
                   getParameter(linear, 1).getStorageAttr()}]
            .insert(linear);
    for (auto &[key, linears] : mergeable)
      if (linears.size() > 1)
        groups.push_back(linears);
  }

  /// A weight is stored once: what an entry uses alone, or beside other ones, is not joined in another entry.
  void dropUnlike() {
    llvm::MapVector<Attribute, SmallVector<Attribute>> joins; // sources of a parameter -> all of its group's, by use
    llvm::DenseMap<Operation *, Attribute> joinOf;
    Builder builder(&getContext());
    for (const Projections &linears : groups)
      for (unsigned operand : {1u, 2u}) { // weights, biases
        SmallVector<Attribute> sources;
        for (LinearOp linear : linears)
          if (auto parameter = getParameter(linear, operand))
            sources.push_back(parameter.getSourcesAttr());
        for (LinearOp linear : linears)
          if (auto parameter = getParameter(linear, operand))
            joinOf[parameter] = builder.getArrayAttr(sources);
      }
    getOperation().walk(
        [&](ParameterOp parameter) { joins[parameter.getSourcesAttr()].push_back(joinOf.lookup(parameter)); });
    llvm::erase_if(groups, [&](const Projections &linears) {
      return llvm::any_of(linears, [&](LinearOp linear) {
        return !llvm::all_equal(joins[getParameter(linear, 1).getSourcesAttr()]) ||
               (linear.getBias() && !llvm::all_equal(joins[getParameter(linear, 2).getSourcesAttr()]));
      });
    });
  }

  static ParameterOp getParameter(LinearOp linear, unsigned operand) {
    return operand < linear->getNumOperands() ? linear->getOperand(operand).getDefiningOp<ParameterOp>()
                                              : ParameterOp();
  }

  static bool canMerge(LinearOp linear, Block *block) {
    auto weight = getOwnParameter(linear.getWeight(), linear);
    // Several sources of one weight are joined along the outputs only.
    if (!llvm::all_of(linear->getUses(), [](OpOperand &use) { return isKept(use, true); }) ||
        linear->getBlock() != block || !weight ||
        (weight.getSources().size() > 1 && int64_t(weight.getJoinDim()) != linear.getOutputDim()))
      return false;
    return !linear.getBias() || getOwnParameter(linear.getBias(), linear);
  }

  void merge(ArrayRef<LinearOp> linears) {
    LinearOp first = linears.front();
    for (LinearOp linear : linears)
      if (linear->isBeforeInBlock(first))
        first = linear;
    SmallVector<ParameterOp> weights, biases;
    for (LinearOp linear : linears) {
      weights.push_back(linear.getWeight().getDefiningOp<ParameterOp>());
      if (linear.getBias())
        biases.push_back(linear.getBias().getDefiningOp<ParameterOp>());
    }

    OpBuilder builder(first);
    Value weight = joinParameters(builder, weights, first.getOutputDim());
    Value bias = biases.empty() ? Value() : joinParameters(builder, biases, 0);
    auto type = cast<RankedTensorType>(first.getType());
    SmallVector<AffineExpr> extents = getExtents(type);
    int64_t outputs = cast<RankedTensorType>(weight.getType()).getDimSize(first.getOutputDim());
    extents.back() = builder.getAffineConstantExpr(outputs);
    auto joinedType = getTensorType(extents, type.getElementType(), getNumSymbols(type));
    Value joined = LinearOp::create(builder, first.getLoc(), joinedType, first.getX(), weight, bias, first.getScales(),
                                    first.getWeightOrder());
    int64_t start = 0;
    for (LinearOp linear : linears) {
      auto sliceType = cast<RankedTensorType>(linear.getType());
      linear.getResult().replaceAllUsesWith(
          SliceOp::create(builder, linear.getLoc(), sliceType, joined, sliceType.getRank() - 1, start).getResult());
      start += sliceType.getShape().back();
    }
    for (LinearOp linear : linears)
      linear.erase();
    for (ParameterOp parameter : llvm::concat<ParameterOp>(weights, biases))
      parameter.erase();
  }

  std::vector<Projections> groups;
};

} // namespace
} // namespace mlir::kiln
