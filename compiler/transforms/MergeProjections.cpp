// SPDX-License-Identifier: Apache-2.0
//
// 1. Collects the linears that an attention reads, or that are appended to states for the attention of another entry,
// by the value that they project (FindProjections.h).
// 2. Merges two or more linears of one value, order and kind of bias into one, at the position of the first.
// 3. Merges equal ops on adjacent results, such as rotary positions of queries and keys, into one op on both
// (ComputeTogether.h).
#include "compiler/transforms/Passes.h"

#include "compiler/transforms/ComputeTogether.h"
#include "compiler/transforms/FindProjections.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <numeric>

namespace mlir::kiln {

#define GEN_PASS_DEF_MERGEPROJECTIONS
#include "compiler/transforms/Passes.h.inc"

namespace {

/// Returns the parameter if only this linear uses it and it has no special layout.
ParameterOp getOwnParameter(Value value, LinearOp linear) {
  auto parameter = value.getDefiningOp<ParameterOp>();
  return parameter && value.hasOneUse() && parameter->getBlock() == linear->getBlock() &&
                 !cast<RankedTensorType>(value.getType()).getEncoding()
             ? parameter
             : ParameterOp();
}

/// Joins the parameters along `dim`.
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
                             front.getStorageAttr(), /*derived=*/false);
}

/// Linears that can be merged.
using Projections = llvm::SmallSetVector<LinearOp, 4>;

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
      SmallVector<LinearOp> linears;
      for (Value operand : {attention.getQuery(), attention.getKey(), attention.getValue()}) {
        AppendOp append = keptRows(operand);
        llvm::erase(appends, append);
        llvm::append_range(linears, findLinears(append ? append.getX() : operand));
      }
      collectAmong(linears, getOutside(attention->getBlock()));
    }
    // Rows that the attention of another entry reads, the states of one layer: they are joined there, so they are
    // joined here.
    llvm::MapVector<std::pair<Block *, StringRef>, SmallVector<LinearOp>> others;
    for (AppendOp append : appends)
      llvm::append_range(others[{getOutside(append->getBlock()), append.getName().rsplit('.').first}],
                         findLinears(append.getX()));
    for (auto &[owner, linears] : others)
      collectAmong(linears, owner.first);
  }

  /// Groups linears, in that order, by x, order, kind of bias and storage. A linear is in one group.
  void collectAmong(ArrayRef<LinearOp> linears, Block *block) {
    llvm::MapVector<std::tuple<Value, int, int, Attribute>, Projections> mergeable;
    for (LinearOp linear : linears)
      if (canMerge(linear, block) &&
          llvm::none_of(groups, [&](const Projections &group) { return group.contains(linear); }))
        mergeable[{linear.getX(), int(linear.getOutputDim()), linear.getBias() ? 1 : 0,
                   getParameter(linear, 1).getStorageAttr()}]
            .insert(linear);
    for (auto &[key, projections] : mergeable)
      if (projections.size() > 1 && canBeSplit(projections.getArrayRef()))
        groups.push_back(inOrder(projections));
  }

  /// Where results are split into heads, reverses the order so that the queries come last: their heads then start at a
  /// nonzero index, and an access to them is an affine map although the joined tensor has more heads.
  static Projections inOrder(const Projections &linears) {
    const bool isSplit = llvm::any_of(linears, [](LinearOp linear) { return getUnsplitColumns(linear) > 1; });
    return isSplit ? Projections(linears.rbegin(), linears.rend()) : linears;
  }

  /// Whether the joined result can be split into heads the way the single results are.
  static bool canBeSplit(ArrayRef<LinearOp> linears) {
    int64_t columns = 1;
    for (LinearOp linear : linears)
      columns = std::lcm(columns, getUnsplitColumns(linear));
    return llvm::all_of(linears, [&](LinearOp linear) { return getOutputs(linear.getResult()) % columns == 0; });
  }

  static int64_t getOutputs(Value value) { return cast<RankedTensorType>(value.getType()).getShape().back(); }

  /// A weight is stored once: linears that an entry uses separately, or joined with others, are not joined in another
  /// entry.
  void dropUnlike() {
    llvm::MapVector<Attribute, SmallVector<Attribute>> joins; // sources of a parameter -> sources of its whole group,
                                                              // by use
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
    if (!isProjection(linear) || linear->getBlock() != block || !weight ||
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
    int64_t outputs = cast<RankedTensorType>(weight.getType()).getDimSize(first.getOutputDim());
    Value joined = LinearOp::create(builder, first.getLoc(), withExtent(type, type.getRank() - 1, outputs),
                                    first.getX(), weight, bias, first.getScales(), first.getWeightOrder());
    readSlices(builder, joined, linears);
    for (LinearOp linear : linears)
      linear.erase();
    for (ParameterOp parameter : llvm::concat<ParameterOp>(weights, biases))
      parameter.erase();
  }

  /// Makes users read columns of `joined`. A result that is split into heads is read from the joined result split the
  /// same way: a view of the whole costs nothing, and a slice of it is an access within the kernel that reads it.
  static void readSlices(OpBuilder &builder, Value joined, ArrayRef<LinearOp> linears) {
    llvm::MapVector<Type, Value> views;
    SmallVector<SliceOp> before;
    int64_t start = 0;
    for (LinearOp linear : linears) {
      auto type = cast<RankedTensorType>(linear.getType());
      const int64_t axis = type.getRank() - 1;
      SmallVector<SliceOp> slices;
      for (Operation *user : llvm::make_early_inc_range(llvm::to_vector(linear->getUsers())))
        if (auto view = dyn_cast<ReshapeOp>(user)) {
          auto split = cast<RankedTensorType>(view.getType());
          const int64_t columns = ShapedType::getNumElements(split.getShape().drop_front(axis + 1));
          RankedTensorType whole = withExtent(split, axis, getOutputs(joined) / columns);
          Value &of = views[whole];
          if (!of)
            of = ReshapeOp::create(builder, view.getLoc(), whole, joined);
          slices.push_back(SliceOp::create(builder, view.getLoc(), split, of, axis, start / columns));
          view.replaceAllUsesWith(slices.back().getResult());
          view.erase();
        }
      slices.push_back(SliceOp::create(builder, linear.getLoc(), type, joined, axis, start));
      linear.getResult().replaceAllUsesWith(slices.back().getResult());
      for (SliceOp first : before)
        for (SliceOp second : slices)
          computeTogether(first, second);
      before = slices;
      start += type.getShape().back();
    }
  }

  std::vector<Projections> groups;
};

} // namespace
} // namespace mlir::kiln
