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
static std::optional<NormedRow> findRow(const StepContext &context) {
  std::optional<RowRun> run = findRowRun(context);
  if (!run || run->perElement.size() != 1)
    return std::nullopt;
  MLIRContext *ofMaps = context.kernel->getContext();
  auto rows = dyn_cast<AffineConstantExpr>(mlir::kiln::getProduct(run->rows, ofMaps)),
       length = dyn_cast<AffineConstantExpr>(mlir::kiln::getProduct(run->elements, ofMaps));
  if (!rows || rows.getValue() != 1 || !length || length.getValue() > mostLength)
    return std::nullopt;
  NormedRow norm{context, std::move(*run), {}, length.getValue(), {}};
  for (const Step &step : ArrayRef(context.placement.steps).slice(norm.run.first, norm.run.count))
    for (const Store &store : step.stores) {
      if (store.place.kind != Parameter::Scratch)
        return std::nullopt;
      norm.unstored.push_back(store.value);
      if (step.op == norm.run.perElement.front())
        norm.row = norm.row ? Value() : store.value;
    }
  return norm.row ? std::optional(std::move(norm)) : std::nullopt;
}

/// Whether the GEMV's input is the row, indexed by K along its last dimension.
static bool isOfRow(const RowProduct &product, const NormedRow &norm) {
  const Contraction &c = product.contraction;
  linalg::GenericOp op = c.op;
  auto constant = [&](ArrayRef<unsigned> loops) { return dyn_cast<AffineConstantExpr>(extentOf(c, loops)); };
  const AffineConstantExpr rows = constant(c.rows), depth = constant(c.depth);
  AffineMap map = operandMap(op->getOpOperand(c.a));
  return op->getOperand(c.a) == norm.row && c.batch.empty() && rows && rows.getValue() == 1 && c.depth.size() == 1 &&
         depth && depth.getValue() == norm.length && map.getNumResults() > 0 &&
         map.getResults().back() == getAffineDimExpr(c.depth.front(), map.getContext());
}

/// Whether both have the same number of columns and the same weight layout.
static bool areAlike(const RowProduct &a, const RowProduct &b) {
  const ContractionInput left(a.context, a.contraction, false), right(b.context, b.contraction, false);
  return extentOf(a.contraction, a.contraction.columns) == extentOf(b.contraction, b.contraction.columns) &&
         left.isAlongDepth && right.isAlongDepth && left.element == right.element && left.together == right.together;
}

/// Whether the stage reads the value only at the element that it stores.
static bool readsSameElement(const Step &step, Value value) {
  linalg::GenericOp op = step.op;
  const AffineMap written =
      op.getMatchingIndexingMap(op.getDpsInitOperand(cast<OpResult>(step.stores.front().value).getResultNumber()));
  unsigned reads = 0;
  for (OpOperand &operand : op->getOpOperands())
    if (operand.get() == value && ++reads && operandMap(operand) != written)
      return false;
  return reads > 0;
}

/// Passes values that one GEMV stores only for a later one in registers, not through memory. Returns false if a later
/// GEMV reads a different element than it stores.
static bool passOn(NormedRow &norm) {
  const Placement &placement = norm.context.placement;
  const size_t first = norm.run.first + norm.run.count, end = first + norm.products.size();
  for (size_t number = first; number < end; ++number)
    for (const Store &store : placement.steps[number].stores) {
      bool isRead = false;
      for (size_t reader = number + 1; reader < placement.steps.size(); ++reader) {
        const Step &step = placement.steps[reader];
        if (!placement.isRead(step, store.value))
          continue;
        if (reader < end && !readsSameElement(step, store.value))
          return false;
        isRead |= reader >= end;
      }
      if (store.place.kind == Parameter::Scratch && !isRead)
        norm.unstored.push_back(store.value);
    }
  return true;
}

std::optional<NormedRow> findNormedRow(const StepContext &context) {
  std::optional<NormedRow> norm = findRow(context);
  if (!norm)
    return std::nullopt;
  const Placement &placement = context.placement;
  const size_t first = norm->run.first + norm->run.count;
  for (size_t number = first; number < placement.steps.size(); ++number) {
    const StepContext ofStep{context.kernel, placement, placement.steps[number], number};
    std::optional<Contraction> contraction = findContraction(ofStep);
    if (!contraction || !isOfRow({ofStep, *contraction}, *norm) ||
        (number > first && !areAlike(norm->products.front(), {ofStep, *contraction})))
      break;
    norm->products.push_back({ofStep, std::move(*contraction)});
  }
  if (norm->products.empty() || !passOn(*norm))
    return std::nullopt;
  for (const Step &step : ArrayRef(placement.steps).drop_front(first + norm->products.size()))
    for (Value value : norm->unstored)
      if (placement.isRead(step, value))
        return std::nullopt;
  return norm;
}

//===- In shared memory ---------------------------------------------------===//

SharedRow::SharedRow(tile::Builder &b, const NormedRow &norm)
    : b(b), norm(norm), memory(tile::addShared(b, b.getF32Type(), norm.length)) {}

LogicalResult SharedRow::compute(Reader &reader, int64_t threads) {
  LogicalResult result =
      computeOnlyRow(b, norm.run, norm.context, reader, threads, norm.row, [&](Value number, Value element) {
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
