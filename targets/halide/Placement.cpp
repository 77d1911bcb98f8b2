// SPDX-License-Identifier: Apache-2.0
#include "targets/halide/Placement.h"

#include "targets/halide/Structure.h"

namespace kiln::halide {

using namespace mlir;
using Halide::Expr;
using Halide::TailStrategy;
using Halide::Var;

int vectorLanes(const MachineModel &machine) { return machine.vectorBytes / int(sizeof(float)); }

void vectorizeGuarded(Halide::Stage stage, Var var, const Expr &extent, int lanes) {
  if (const int64_t *fixed = Halide::Internal::as_const_int(extent))
    while (lanes > *fixed)
      lanes /= 2;
  if (lanes > 1)
    stage.vectorize(var, lanes, TailStrategy::GuardWithIf);
}

void vectorizeReduction(const Stage &stage, int lanes, int vectors, llvm::function_ref<void(Halide::Func)> placePart) {
  if (!reorderableCombiner(stage.op))
    return;
  Halide::Func func = stage.funcs.front();
  Halide::RVar loop = stage.domain[0], outer("outer"), inner("inner");
  int width = lanes;
  if (const int64_t *fixed = Halide::Internal::as_const_int(loop.extent())) {
    width = lanes * vectors;
    while (width > *fixed || (*fixed % width && width > lanes))
      width /= 2;
  }
  if (width < 2)
    return;
  Var part("part");
  func.update().split(loop, outer, inner, width);
  Halide::Func parts = func.update().rfactor(inner, part);
  placePart(parts);
  parts.vectorize(part).update().vectorize(part);
  func.update().atomic().vectorize(inner);
}

void scheduleStore(const Output &output, int lanes, int64_t taskElements) {
  if (output.rank() == 0)
    return;
  Halide::Func func = output.func;
  // The outermost dimension that is worth splitting; what it encloses is at least one task or all there is.
  unsigned outer = output.rank() - 1;
  while (outer > 0 && output.bounds[outer] == 1)
    --outer;
  int64_t inner = 1, total = 1;
  for (unsigned i = 0; i < output.rank(); ++i) {
    total *= output.bounds[i];
    if (i < outer)
      inner *= output.bounds[i];
  }
  Var first = dimensionVar(0), block("block"), within("within");
  int64_t chunk = std::max<int64_t>(1, taskElements / inner);
  if (total > taskElements && output.bounds[outer] > chunk) {
    if (outer == 0)
      chunk = (chunk + lanes - 1) / lanes * lanes;
    if (chunk > 1) {
      func.split(dimensionVar(outer), block, within, int(chunk), TailStrategy::GuardWithIf);
      if (outer == 0)
        first = within;
      func.parallel(block);
    } else {
      func.parallel(dimensionVar(outer));
    }
  }
  vectorizeGuarded(func, first, output.extents[0], lanes);
}

bool isReusedByReduction(linalg::GenericOp op) {
  for (Value result : op.getResults())
    for (OpOperand &use : result.getUses()) {
      auto user = dyn_cast<linalg::GenericOp>(use.getOwner());
      if (!user && isa<func::ReturnOp>(use.getOwner()))
        continue;
      if (!user) // gathered
        return true;
      if (user.getNumReductionLoops() == 0) {
        if (isReusedByReduction(user))
          return true;
        continue;
      }
      AffineMap map = user.getMatchingIndexingMap(&use);
      for (unsigned loop = 0; loop < user.getNumLoops(); ++loop)
        if (!map.isFunctionOfDim(loop) && staticExtent(user, loop) != 1)
          return true;
    }
  return false;
}

void placeAtRoot(Translator &translator, const llvm::DenseSet<Operation *> &placed, int lanes) {
  for (auto &[op, stage] : translator.stages) {
    if (placed.contains(op) || !(stage.isReduction || isReusedByReduction(stage.op)))
      continue;
    for (auto [number, func] : llvm::enumerate(stage.funcs)) {
      func.compute_root();
      if (func.dimensions() == 0)
        continue;
      Value result = op->getResult(number);
      Expr extent = translator.extent(result, cast<RankedTensorType>(result.getType()).getRank() - 1);
      vectorizeGuarded(func, dimensionVar(0), extent, lanes);
      for (int update = 0; update < func.num_update_definitions(); ++update)
        vectorizeGuarded(func.update(update), dimensionVar(0), extent, lanes);
    }
  }
}

void protectInPlaceArguments(Translator &translator) {
  auto inPlace = translator.kernel->getAttrOfType<DenseI64ArrayAttr>("kiln.inplace");
  if (!inPlace || translator.outputs.size() < 2)
    return;
  for (int64_t number : inPlace.asArrayRef())
    translator.argument(number).in().compute_root();
}

} // namespace kiln::halide
