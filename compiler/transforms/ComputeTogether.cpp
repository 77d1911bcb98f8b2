// SPDX-License-Identifier: Apache-2.0
//
// 1. Follows the users of both slices in lockstep without changing anything. The axes before the slices' axis are
// preserved, so the two values stay adjacent along one axis throughout.
// 2. Replaces each pair of ops, in order, by one op on the concatenated operands. Slices of the last results follow.
#include "compiler/transforms/ComputeTogether.h"

#include "compiler/dialect/Extents.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::kiln {

RankedTensorType withExtent(RankedTensorType type, int64_t axis, int64_t extent) {
  SmallVector<AffineExpr> extents = getExtents(type);
  extents[axis] = getAffineConstantExpr(extent, type.getContext());
  return getTensorType(extents, type.getElementType(), getNumSymbols(type));
}

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

class Neighbours {
public:
  Neighbours(SliceOp first, SliceOp second) : first(first), second(second), axis(first.getAxis()) {}

  bool areSideBySide() {
    return first.getX() == second.getX() && first.getAxis() == second.getAxis() && !first.getAtEnd() &&
           !second.getAtEnd() && extentOf(first) != ShapedType::kDynamic && extentOf(second) != ShapedType::kDynamic &&
           int64_t(first.getStart()) + extentOf(first) == int64_t(second.getStart());
  }

  /// Whether there are ops on both slices and all pairs can be merged.
  bool follow() {
    pairs[first.getResult()] = second.getResult();
    for (size_t i = 0; i < pairs.size(); ++i) {
      auto [a, b] = *std::next(pairs.begin(), i);
      auto users = usersOf(a), others = usersOf(b);
      if (!users || !others || users->size() != others->size())
        return false;
      for (auto [user, other] : llvm::zip_equal(*users, *others)) {
        if (!doTheSame(user, other) ||
            pairs.try_emplace(user->getResult(0), other->getResult(0)).first->second != other->getResult(0))
          return false;
      }
    }
    return pairs.size() > 1 && llvm::all_of(llvm::drop_begin(pairs), [&](const auto &pair) {
             return readPairs(pair.first.getDefiningOp(), pair.second.getDefiningOp());
           });
  }

  void join() {
    OpBuilder builder(first);
    const Type both = withExtent(typeOf(first), axis, extentOf(first) + extentOf(second));
    joined[first.getResult()] =
        SliceOp::create(builder, first.getLoc(), both, first.getX(), axis, first.getStart()).getResult();
    auto inOrder = llvm::to_vector(llvm::drop_begin(pairs));
    llvm::sort(inOrder, [](const auto &a, const auto &b) {
      return a.first.getDefiningOp()->isBeforeInBlock(b.first.getDefiningOp());
    });
    for (auto &[a, b] : inOrder)
      joinOps(a.getDefiningOp(), b.getDefiningOp());
    for (auto &[a, b] : llvm::reverse(inOrder)) {
      a.getDefiningOp()->erase();
      b.getDefiningOp()->erase();
    }
  }

private:
  int64_t extentOf(Value value) const { return typeOf(value).getDimSize(axis); }

  static bool isReader(Operation *op) { return isa<AppendOp, AttentionOp, AttentionScoresOp, EachSequenceOp>(op); }

  /// Returns the users that are to be merged, in the order of the block, or nullopt if one is in another block.
  std::optional<SmallVector<Operation *>> usersOf(Value value) {
    llvm::SmallSetVector<Operation *, 4> users;
    for (Operation *user : value.getUsers())
      if (!isReader(user)) {
        if (user->getBlock() != first->getBlock())
          return std::nullopt;
        users.insert(user);
      }
    SmallVector<Operation *> inOrder = llvm::to_vector(users);
    llvm::sort(inOrder, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    return inOrder;
  }

  /// Whether the ops are equal except for the size of the axis, and leave each element at its position along that axis.
  bool doTheSame(Operation *a, Operation *b) {
    if (a->getName() != b->getName() || a->getAttrDictionary() != b->getAttrDictionary() || a->getNumResults() != 1 ||
        a->getNumOperands() != b->getNumOperands())
      return false;
    RankedTensorType x = typeOf(a->getResult(0)), y = typeOf(b->getResult(0));
    if (x.getRank() != y.getRank() || x.getRank() <= axis || x.isDynamicDim(axis) || y.isDynamicDim(axis) ||
        withExtent(x, axis, 1) != withExtent(y, axis, 1))
      return false;
    if (auto slice = dyn_cast<SliceOp>(a))
      return int64_t(slice.getAxis()) != axis;
    if (auto concat = dyn_cast<ConcatOp>(a))
      return int64_t(concat.getAxis()) != axis;
    if (auto view = dyn_cast<ReshapeOp>(a))
      return keepsAxis(view) && keepsAxis(cast<ReshapeOp>(b));
    return hasRole(a, KernelRole::Pointwise) && !isa<DropoutOp>(a); // the mask depends on the element's position
  }

  /// Whether the dimensions before the axis are preserved, so that adjacent values stay adjacent along it.
  bool keepsAxis(ReshapeOp view) const {
    RankedTensorType from = typeOf(view.getX()), to = typeOf(view);
    return from.getRank() > axis && !ShapedType::isDynamicShape(from.getShape().drop_front(axis)) &&
           !ShapedType::isDynamicShape(to.getShape().drop_front(axis)) &&
           ArrayRef(getExtents(from)).take_front(axis) == ArrayRef(getExtents(to)).take_front(axis);
  }

  /// Whether each operand either belongs to a pair, or is shared by both ops and broadcast along the axis.
  bool readPairs(Operation *a, Operation *b) const {
    return llvm::all_of(llvm::zip_equal(a->getOperands(), b->getOperands()), [&](auto operands) {
      auto [x, y] = operands;
      if (auto found = pairs.find(x); found != pairs.end())
        return found->second == y && (!hasRole(a, KernelRole::Pointwise) || liesLike(x, a->getResult(0)));
      return x == y && isBroadcast(a, x);
    });
  }

  bool liesLike(Value operand, Value result) const {
    return typeOf(operand).getRank() == typeOf(result).getRank() && extentOf(operand) == extentOf(result);
  }

  bool isBroadcast(Operation *op, Value operand) const {
    const int64_t missing = typeOf(op->getResult(0)).getRank() - typeOf(operand).getRank();
    return hasRole(op, KernelRole::Pointwise) && (axis < missing || typeOf(operand).getDimSize(axis - missing) == 1);
  }

  void joinOps(Operation *a, Operation *b) {
    OpBuilder builder(a->isBeforeInBlock(b) ? a : b);
    Value x = a->getResult(0), y = b->getResult(0);
    const int64_t extent = extentOf(x);
    IRMapping mapping;
    for (Value operand : a->getOperands())
      if (Value both = joined.lookup(operand))
        mapping.map(operand, both);
    Value both = builder.clone(*a, mapping)->getResult(0);
    both.setType(withExtent(typeOf(x), axis, extent + extentOf(y)));
    joined[x] = both;
    auto read = [&](Value value, int64_t start) {
      if (llvm::any_of(value.getUsers(), isReader))
        value.replaceUsesWithIf(
            SliceOp::create(builder, value.getLoc(), value.getType(), both, axis, start).getResult(),
            [](OpOperand &use) { return isReader(use.getOwner()); });
    };
    read(x, 0);
    read(y, extent);
  }

  SliceOp first, second;
  const int64_t axis;
  llvm::MapVector<Value, Value> pairs; // value derived from first -> from second
  DenseMap<Value, Value> joined;       // value derived from first -> merged value
};

} // namespace

void computeTogether(SliceOp first, SliceOp second) {
  Neighbours neighbours(first, second);
  if (neighbours.areSideBySide() && neighbours.follow())
    neighbours.join();
}

} // namespace mlir::kiln
