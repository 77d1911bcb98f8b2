// SPDX-License-Identifier: Apache-2.0
#include "compiler/kernel/Attention.h"

#include "compiler/dialect/KilnDialect.h"
#include "compiler/kernel/Masks.h"
#include "compiler/kernel/RowReduction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace kiln {

using namespace mlir;

//===- The ops -----------------------------------------------------------===//

static bool isUsedOnlyBy(Value value, ArrayRef<Operation *> users) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) { return llvm::is_contained(users, user); });
}

/// Returns the only two users of the value, in order; nothing if there are others.
static SmallVector<linalg::GenericOp> twoUsers(Value value) {
  SmallVector<linalg::GenericOp> users = genericUsers(value);
  if (users.size() != 2 || !isUsedOnlyBy(value, {users[0], users[1]}))
    users.clear();
  return users;
}

std::optional<AttentionOps> attentionOf(linalg::GenericOp scores) {
  AttentionOps found;
  Value wide = scores->getResult(0);
  const unsigned rank = cast<RankedTensorType>(wide.getType()).getRank();
  if (scores->getNumResults() != 1 || rank == 0)
    return std::nullopt;
  AffineMap identity = AffineMap::getMultiDimIdentityMap(rank, scores.getContext());
  if (SmallVector<linalg::GenericOp> users = genericUsers(wide); users.size() == 1 && isElementwise(users[0])) {
    std::optional<unsigned> score = inputAt(users[0], wide, identity);
    if (!score || !isUsedOnlyBy(wide, {users[0]}))
      return std::nullopt;
    found.masked = users[0];
    found.maskedScore = *score;
    wide = users[0].getResult(0);
  }

  SmallVector<linalg::GenericOp> users = twoUsers(wide);
  if (users.empty())
    return std::nullopt;
  found.maxima = users[0], found.weights = users[1];
  auto difference = found.weights->getAttrOfType<DenseI64ArrayAttr>(mlir::kiln::exponentialAttrName);
  if (!isRowReduction<arith::MaximumFOp, arith::MaxNumFOp>(found.maxima, wide) || !difference ||
      !isElementwise(found.weights))
    return std::nullopt;
  Value maxima = found.maxima.getResult(0), weights = found.weights.getResult(0);
  std::optional<unsigned> score = inputAt(found.weights, wide, identity),
                          maximum = inputAt(found.weights, maxima, identity.dropResult(rank - 1));
  if (!score || !maximum || difference.asArrayRef() != ArrayRef<int64_t>{*score, *maximum} ||
      !isUsedOnlyBy(maxima, {found.weights}))
    return std::nullopt;
  found.weightScore = *score, found.weightMaximum = *maximum;

  users = twoUsers(weights);
  if (users.empty())
    return std::nullopt;
  const bool isFirst = isRowReduction<arith::AddFOp>(users[0], weights);
  found.sums = users[isFirst ? 0 : 1], found.productOp = users[isFirst ? 1 : 0];
  return isRowReduction<arith::AddFOp>(found.sums, weights) ? std::optional(found) : std::nullopt;
}

//===- Key limits --------------------------------------------------------===//

namespace {

class KeyLimitFinder {
public:
  KeyLimitFinder(linalg::GenericOp op, unsigned keyLoop, std::optional<unsigned> queryLoop,
                 function_ref<bool(OpOperand &)> isKnown)
      : op(op), keyLoop(keyLoop), queryLoop(queryLoop), isKnown(isKnown) {}

  /// Returns nullopt if the condition is no upper limit of the key's index.
  std::optional<KeyLimit> find(Value condition) {
    std::optional<UpperLimit> limit = asUpperLimit(condition);
    if (!limit || limit->index.getDim() != keyLoop)
      return std::nullopt;
    return KeyLimit{limit->value, limit->isInclusive, dependenceOf(limit->value)};
  }

private:
  Dependence dependenceOf(Value value) {
    if (value.getParentBlock() != op.getBlock())
      return Dependence::None;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      OpOperand &operand = op->getOpOperand(argument.getArgNumber());
      AffineMap map = op.getMatchingIndexingMap(&operand);
      if (!isKnown(operand) || map.isFunctionOfDim(keyLoop))
        return Dependence::OnKey;
      return queryLoop && map.isFunctionOfDim(*queryLoop) ? Dependence::OnQuery : Dependence::None;
    }
    Operation *from = value.getDefiningOp();
    if (auto index = dyn_cast<linalg::IndexOp>(from))
      return index.getDim() == keyLoop     ? Dependence::OnKey
             : index.getDim() == queryLoop ? Dependence::GrowsWithQuery
                                           : Dependence::None;
    if (!isa<arith::ArithDialect>(from->getDialect()))
      return Dependence::OnKey;
    auto result = Dependence::None;
    for (auto [i, operand] : llvm::enumerate(from->getOperands())) {
      Dependence each = dependenceOf(operand);
      const bool isMonotone = isa<arith::AddIOp>(from) || (isa<arith::SubIOp>(from) && i == 0);
      if (each == Dependence::GrowsWithQuery && !isMonotone)
        each = Dependence::OnQuery;
      result = std::max(result, each);
    }
    return result;
  }

  linalg::GenericOp op;
  unsigned keyLoop;
  std::optional<unsigned> queryLoop;
  function_ref<bool(OpOperand &)> isKnown;
};

} // namespace

KeyLimits findKeyLimits(linalg::GenericOp op, unsigned keyLoop, std::optional<unsigned> queryLoop, Dependence most,
                        function_ref<bool(OpOperand &)> isKnown) {
  KeyLimits found;
  std::optional<Mask> mask = asMask(op.getBlock()->getTerminator()->getOperand(0));
  if (!mask)
    return found;
  found.score = mask->score;
  found.areAll = true;
  KeyLimitFinder finder(op, keyLoop, queryLoop, isKnown);
  for (Value condition : mask->conditions()) {
    std::optional<KeyLimit> limit = finder.find(condition);
    if (limit && limit->dependence <= most)
      found.limits.push_back(*limit);
    else
      found.areAll = false;
  }
  return found;
}

} // namespace kiln
