// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/gemm/NormPrologue.h"

#include "compiler/dialect/Extents.h"
#include "targets/cuda/rows/RowReduction.h"
#include "targets/cuda/tile/Shared.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

/// 32 KiB of shared memory, which a kernel may use in addition to everything else.
static constexpr int64_t mostLength = 8192;

/// Matches the norm without its GEMVs, if its only element-wise result is not a result of the kernel.
static std::optional<NormPrologue> findRow(const StageContext &context) {
  std::optional<RowRun> run = findRowRun(context);
  if (!run || run->perElement.size() != 1)
    return std::nullopt;
  MLIRContext *ofMaps = context.kernel->getContext();
  auto rows = dyn_cast<AffineConstantExpr>(mlir::kiln::getProduct(run->rows, ofMaps)),
       length = dyn_cast<AffineConstantExpr>(mlir::kiln::getProduct(run->elements, ofMaps));
  if (!rows || rows.getValue() != 1 || !length || length.getValue() > mostLength)
    return std::nullopt;
  NormPrologue norm{context, std::move(*run), {}, length.getValue(), {}};
  for (const KernelStage &stage : ArrayRef(context.placement.stages).slice(norm.run.first, norm.run.count))
    for (const Store &store : stage.stores) {
      if (store.place.kind != Parameter::Scratch)
        return std::nullopt;
      norm.unstored.push_back(store.value);
      if (stage.op == norm.run.perElement.front())
        norm.row = norm.row ? Value() : store.value;
    }
  return norm.row ? std::optional(std::move(norm)) : std::nullopt;
}

/// Whether the GEMV's input is the row, indexed by K along its last dimension.
static bool isOfRow(const RowProduct &product, const NormPrologue &norm) {
  const Contraction &c = product.contraction;
  linalg::GenericOp op = c.op;
  auto constant = [&](ArrayRef<unsigned> loops) { return dyn_cast<AffineConstantExpr>(extentOf(c, loops)); };
  const AffineConstantExpr rows = constant(c.rows), k = constant(c.reduction);
  AffineMap map = operandMap(op->getOpOperand(c.a));
  return op->getOperand(c.a) == norm.row && c.batch.empty() && rows && rows.getValue() == 1 &&
         c.reduction.size() == 1 && k && k.getValue() == norm.length && map.getNumResults() > 0 &&
         map.getResults().back() == getAffineDimExpr(c.reduction.front(), map.getContext());
}

/// Whether both have the same number of columns and the same weight layout.
static bool areAlike(const RowProduct &a, const RowProduct &b) {
  const ContractionInput left(a.context, a.contraction, false), right(b.context, b.contraction, false);
  return extentOf(a.contraction, a.contraction.columns) == extentOf(b.contraction, b.contraction.columns) &&
         left.isKMajor && right.isKMajor && left.element == right.element && left.together == right.together;
}

/// Whether the stage reads the value only at the element that it stores.
static bool readsSameElement(const KernelStage &stage, Value value) {
  linalg::GenericOp op = stage.op;
  const AffineMap written =
      op.getMatchingIndexingMap(op.getDpsInitOperand(cast<OpResult>(stage.stores.front().value).getResultNumber()));
  unsigned reads = 0;
  for (OpOperand &operand : op->getOpOperands())
    if (operand.get() == value && ++reads && operandMap(operand) != written)
      return false;
  return reads > 0;
}

/// Passes values that one GEMV stores only for a later one in registers, not through memory. Returns false if a later
/// GEMV reads a different element than it stores.
static bool passOn(NormPrologue &norm) {
  const Placement &placement = norm.context.placement;
  const size_t first = norm.run.first + norm.run.count, end = first + norm.products.size();
  for (size_t number = first; number < end; ++number)
    for (const Store &store : placement.stages[number].stores) {
      bool isRead = false;
      for (size_t user = number + 1; user < placement.stages.size(); ++user) {
        const KernelStage &stage = placement.stages[user];
        if (!placement.isRead(stage, store.value))
          continue;
        if (user < end && !readsSameElement(stage, store.value))
          return false;
        isRead |= user >= end;
      }
      if (store.place.kind == Parameter::Scratch && !isRead)
        norm.unstored.push_back(store.value);
    }
  return true;
}

std::optional<NormPrologue> findNormPrologue(const StageContext &context) {
  std::optional<NormPrologue> norm = findRow(context);
  if (!norm)
    return std::nullopt;
  const Placement &placement = context.placement;
  const size_t first = norm->run.first + norm->run.count;
  for (size_t number = first; number < placement.stages.size(); ++number) {
    const StageContext ofStage{context.kernel, placement, placement.stages[number], number};
    std::optional<Contraction> contraction = findContraction(ofStage);
    if (!contraction || !isOfRow({ofStage, *contraction}, *norm) ||
        (number > first && !areAlike(norm->products.front(), {ofStage, *contraction})))
      break;
    norm->products.push_back({ofStage, std::move(*contraction)});
  }
  if (norm->products.empty() || !passOn(*norm))
    return std::nullopt;
  for (const KernelStage &stage : ArrayRef(placement.stages).drop_front(first + norm->products.size()))
    for (Value value : norm->unstored)
      if (placement.isRead(stage, value))
        return std::nullopt;
  return norm;
}

//===- In shared memory ---------------------------------------------------===//

SharedRow::SharedRow(tile::Builder &b, const NormPrologue &norm)
    : b(b), norm(norm), memory(tile::addShared(b, b.getF32Type(), norm.length)) {}

LogicalResult SharedRow::compute(ElementEmitter &user, int64_t threads) {
  LogicalResult result =
      computeOnlyRow(b, norm.run, norm.context, user, threads, norm.row, [&](Value number, Value element) {
        if (!element.getType().isF32())
          element = b.createOrFold<arith::ExtFOp>(b.getF32Type(), element);
        tile::storeOne(b, element, tile::advance(b, memory, number));
      });
  tile::barrier(b);
  return result;
}

Values SharedRow::read(Value first, int64_t count) {
  Values values;
  for (int64_t i = 0; i < count; i += 4) {
    Value from = tile::advance(b, memory, b.add(first, b.integer(i)));
    if (count % 4 != 0)
      for (int64_t j = i; j < std::min(count, i + 4); ++j)
        values.push_back(tile::loadOne(b, tile::advance(b, from, j - i)));
    else
      llvm::append_range(values, tile::loadFour(b, from));
  }
  return values;
}

} // namespace kiln::cuda
