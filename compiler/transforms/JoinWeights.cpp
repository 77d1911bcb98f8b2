// SPDX-License-Identifier: Apache-2.0
//
// 1. Collects the concats of parameters along the first axis that only grouped_linear reads.
// 2. Drops those with a weight that has another use in some entry, until all uses of each weight are alike: a weight is
// stored once.
// 3. Replaces each concat that is left by a parameter of its sources.
#include "compiler/transforms/Passes.h"

#include "compiler/dialect/KilnDialect.h"
#include "compiler/dialect/Training.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::kiln {

#define GEN_PASS_DEF_JOINWEIGHTS
#include "compiler/transforms/Passes.h.inc"

namespace {

/// Whether the value joins the weights or the biases of the groups of grouped_linears, and is nothing else.
bool isOfGroups(ConcatOp concat) {
  llvm::SmallDenseSet<Value> inputs;
  const bool isOfWeights = llvm::all_of(concat.getInputs(), [&](Value input) {
    auto parameter = input.getDefiningOp<ParameterOp>();
    return parameter && inputs.insert(input).second && parameter.getSources().size() == 1 && !parameter.getVariable() &&
           !parameter.getStorage();
  });
  const bool isReadByGroups = !concat->use_empty() && llvm::all_of(concat->getUses(), [](OpOperand &use) {
    auto grouped = dyn_cast<GroupedLinearOp>(use.getOwner());
    return grouped && use.get() != grouped.getX();
  });
  return isOfWeights && isReadByGroups && concat.getAxis() == 0 && concat.getInputs().size() > 1;
}

struct JoinWeights : impl::JoinWeightsBase<JoinWeights> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto entry : module.getOps<func::FuncOp>())
      if (entry->hasAttr(trainingAttrName))
        return;
    llvm::SetVector<ConcatOp> concats;
    module.walk([&](ConcatOp concat) {
      if (isOfGroups(concat))
        concats.insert(concat);
    });
    while (dropOne(concats))
      ;
    for (ConcatOp concat : concats)
      join(concat);
  }

private:
  static Attribute sourcesOf(ConcatOp concat) {
    SmallVector<Attribute> sources;
    for (Value input : concat.getInputs())
      sources.push_back(input.getDefiningOp<ParameterOp>().getSources()[0]);
    return ArrayAttr::get(concat.getContext(), sources);
  }

  /// Drops the concats with a weight that has other uses, or uses in other concats; returns whether there were some.
  bool dropOne(llvm::SetVector<ConcatOp> &concats) {
    DenseMap<Attribute, SmallVector<Attribute>> uses; // name of a weight -> what is joined by each use; null: nothing
    getOperation().walk([&](ParameterOp parameter) {
      for (Attribute source : parameter.getSources())
        for (Operation *user : parameter.getResult().getUsers()) {
          auto concat = dyn_cast<ConcatOp>(user);
          uses[source].push_back(concat && concats.contains(concat) ? sourcesOf(concat) : Attribute());
        }
    });
    return concats.remove_if([&](ConcatOp concat) {
      return llvm::any_of(concat.getInputs(), [&](Value input) {
        return !llvm::all_equal(uses.lookup(input.getDefiningOp<ParameterOp>().getSources()[0]));
      });
    });
  }

  static void join(ConcatOp concat) {
    OpBuilder builder(concat);
    SmallVector<int64_t> extents;
    SmallVector<ParameterOp> parameters;
    for (Value input : concat.getInputs()) {
      parameters.push_back(input.getDefiningOp<ParameterOp>());
      extents.push_back(cast<RankedTensorType>(input.getType()).getDimSize(0));
    }
    auto joined =
        ParameterOp::create(builder, parameters.front().getLoc(), concat.getType(), cast<ArrayAttr>(sourcesOf(concat)),
                            parameters.front().getCopies(), builder.getDenseI64ArrayAttr(extents), /*join_dim=*/0,
                            /*variable=*/false, StorageAttr(), /*derived=*/false);
    concat.replaceAllUsesWith(joined.getResult());
    concat.erase();
    for (ParameterOp parameter : parameters)
      if (parameter.use_empty())
        parameter.erase();
  }
};

} // namespace
} // namespace mlir::kiln
