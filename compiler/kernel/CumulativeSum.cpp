// SPDX-License-Identifier: Apache-2.0
#include "compiler/kernel/CumulativeSum.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseSet.h"

namespace kiln {

using namespace mlir;

static bool isZero(Value value) { return matchPattern(value, m_Zero()) || matchPattern(value, m_PosZeroFloat()); }

/// Whether a value of the op's region depends on the loop, or on an accumulator.
static bool dependsOn(linalg::GenericOp op, Value wanted, unsigned loop) {
  SmallVector<Value> open{wanted};
  llvm::DenseSet<Value> seen;
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (value.getParentBlock() != op.getBlock() || !seen.insert(value).second)
      continue;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      OpOperand &operand = op->getOpOperand(argument.getArgNumber());
      if (op.isDpsInit(&operand) || op.getMatchingIndexingMap(&operand).isFunctionOfDim(loop))
        return true;
      continue;
    }
    Operation *inner = value.getDefiningOp();
    if (auto index = dyn_cast<linalg::IndexOp>(inner); index && index.getDim() == loop)
      return true;
    llvm::append_range(open, inner->getOperands());
  }
  return false;
}

std::optional<CumulativeSum> asCumulativeSum(linalg::GenericOp op) {
  const unsigned last = op.getNumLoops() - 1;
  if (op.getNumReductionLoops() != 1 || op.getNumResults() != 1 ||
      op.getIteratorTypesArray()[last] != utils::IteratorType::reduction)
    return std::nullopt;
  auto start = op.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  Block &body = *op.getBlock();
  Operation *sum = body.getTerminator()->getOperand(0).getDefiningOp();
  if (!start || !isZero(start.getInputs().front()) || !isa_and_nonnull<arith::AddFOp, arith::AddIOp>(sum) ||
      sum->getOperand(0) != body.getArguments().back())
    return std::nullopt;
  auto select = sum->getOperand(1).getDefiningOp<arith::SelectOp>();
  auto compare = select ? select.getCondition().getDefiningOp<arith::CmpIOp>() : arith::CmpIOp();
  if (!compare || !isZero(select.getFalseValue()))
    return std::nullopt;
  auto here = compare.getLhs().getDefiningOp<linalg::IndexOp>(), at = compare.getRhs().getDefiningOp<linalg::IndexOp>();
  const arith::CmpIPredicate predicate = compare.getPredicate();
  if (!here || !at || here.getDim() != last || at.getDim() == last ||
      (predicate != arith::CmpIPredicate::sle && predicate != arith::CmpIPredicate::sge) ||
      dependsOn(op, select.getTrueValue(), unsigned(at.getDim())))
    return std::nullopt;
  return CumulativeSum{op, unsigned(at.getDim()), predicate == arith::CmpIPredicate::sge, select.getTrueValue()};
}

} // namespace kiln
