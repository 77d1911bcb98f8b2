// SPDX-License-Identifier: Apache-2.0
#include "compiler/kernel/Masks.h"

#include "compiler/dialect/ExcludedScore.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

namespace kiln {

using namespace mlir;

SmallVector<Value> Mask::conditions() const {
  SmallVector<Value> parts, rest{condition};
  while (!rest.empty()) {
    Value part = rest.pop_back_val();
    if (auto both = part.getDefiningOp<arith::AndIOp>())
      rest.append({both.getLhs(), both.getRhs()});
    else
      parts.push_back(part);
  }
  return parts;
}

std::optional<Mask> asMask(Value value) {
  auto select = value.getDefiningOp<arith::SelectOp>();
  APFloat excluded(0.0f);
  if (!select || !matchPattern(select.getFalseValue(), m_ConstantFloat(&excluded)) ||
      !(excluded.convertToDouble() <= mlir::kiln::lowestMask))
    return std::nullopt;
  return Mask{select.getCondition(), select.getTrueValue()};
}

std::optional<UpperLimit> asUpperLimit(Value condition) {
  using P = arith::CmpIPredicate;
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare)
    return std::nullopt;
  Value index = compare.getLhs(), limit = compare.getRhs();
  P predicate = compare.getPredicate();
  if (predicate == P::sge || predicate == P::sgt) {
    std::swap(index, limit);
    predicate = predicate == P::sge ? P::sle : P::slt;
  }
  auto op = index.getDefiningOp<linalg::IndexOp>();
  if (!op || (predicate != P::sle && predicate != P::slt))
    return std::nullopt;
  return UpperLimit{op, limit, predicate == P::sle};
}

} // namespace kiln
