// SPDX-License-Identifier: Apache-2.0
#include "compiler/kernel/Contraction.h"

#include "compiler/dialect/KilnDialect.h"
#include "compiler/kernel/RowReduction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

namespace kiln {

using namespace mlir;

/// Returns the number of the region argument that the value is, through conversions; -1 if it is none.
static int regionArgument(Value value) {
  while (auto *op = value.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::ExtSIOp, arith::SIToFPOp>(op))
      return -1;
    value = op->getOperand(0);
  }
  return cast<BlockArgument>(value).getArgNumber();
}

/// Returns the region argument that the value is, through conversions, and, for integers, the argument of the scale by
/// which they are multiplied; -1 for none.
static std::pair<int, int> scaledArgument(Value value) {
  auto product = value.getDefiningOp<arith::MulFOp>();
  if (!product)
    return {regionArgument(value), -1};
  int numbers = regionArgument(product.getLhs()), scale = regionArgument(product.getRhs());
  return product.getLhs().getDefiningOp<arith::SIToFPOp>() ? std::pair(numbers, scale) : std::pair(-1, -1);
}

static bool isZeroFill(Value value) {
  auto fill = value.getDefiningOp<linalg::FillOp>();
  return fill && (matchPattern(fill.getInputs()[0], m_AnyZeroFloat()) || matchPattern(fill.getInputs()[0], m_Zero()));
}

Type Contraction::sumType() const { return getElementTypeOrSelf(op->getResult(0)); }

bool Contraction::dependsOn(unsigned operand, unsigned loop) const {
  return linalg::GenericOp(op).getMatchingIndexingMap(&op->getOpOperand(operand)).isFunctionOfDim(loop);
}

bool Contraction::isStrict() const {
  return add->hasAttr(mlir::kiln::strictAttrName) || multiply->hasAttr(mlir::kiln::strictAttrName);
}

bool Contraction::sortLoops(ArrayRef<unsigned> parallel) {
  for (unsigned loop : parallel) {
    const bool ofA = dependsOn(a, loop), ofB = dependsOn(b, loop);
    (ofA && ofB ? batch : ofB ? columns : rows).push_back(loop);
  }
  auto isLast = [&](ArrayRef<unsigned> loops) { return !loops.empty() && loops.back() == parallel.back(); };
  if (isLast(rows) && !scale) {
    std::swap(rows, columns);
    std::swap(a, b);
  }
  return isLast(columns);
}

std::optional<Contraction> contractionOf(linalg::GenericOp op) {
  Operation *add = reorderableCombiner(op);
  if (!isa_and_nonnull<arith::AddFOp, arith::AddIOp>(add) || !isZeroFill(op.getDpsInits()[0]))
    return std::nullopt;
  Value product = add->getOperand(add->getOperand(0) == op.getRegionOutputArgs()[0] ? 1 : 0);
  auto *multiply = product.getDefiningOp();
  if (!isa_and_nonnull<arith::MulFOp, arith::MulIOp>(multiply))
    return std::nullopt;
  const int left = regionArgument(multiply->getOperand(0)), inputs = op.getNumDpsInputs();
  const auto [right, scale] = scaledArgument(multiply->getOperand(1));
  if (left < 0 || right < 0 || left == right || left >= inputs || right >= inputs || scale >= inputs)
    return std::nullopt;
  // Other inputs may only determine extents.
  for (int i = 0; i < inputs; ++i)
    if (i != left && i != right && i != scale && !op.getBlock()->getArgument(i).use_empty())
      return std::nullopt;
  Contraction c;
  c.op = op;
  c.a = unsigned(left), c.b = unsigned(right);
  if (scale >= 0)
    c.scale = unsigned(scale);
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction)
      c.reduction.push_back(loop);
  c.add = add, c.multiply = multiply;
  return c;
}

} // namespace kiln
