// SPDX-License-Identifier: Apache-2.0
//
// 1. Each reducing op starts a group and takes its epilogue.
// 2. The other ops, last to first, join the groups of their users where that saves a round trip through memory and
// repeats no work; an op that cannot join starts a group.
// 3. State updates cut from a group's result, and the norm of a single row, join groups where the target requests it.
#include "compiler/transforms/KernelGroups.h"

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
#include "compiler/transforms/RowsInPlace.h"

namespace mlir::kiln {

/// Targets may assume that arithmetic sees neither infinities nor NaN, but not that loaded values are finite.
static bool isFinite(DenseElementsAttr splat) {
  return !isa<FloatType>(splat.getElementType()) || splat.getSplatValue<APFloat>().isFinite();
}

bool isHostOp(Operation *op) {
  if (auto constant = dyn_cast<ConstantOp>(op)) {
    auto values = cast<DenseElementsAttr>(constant.getValue());
    return !values.isSplat() || !isFinite(values);
  }
  return op->hasTrait<HostOp>() || op->getDialect()->getNamespace() != "kiln";
}

SmallVector<Value> KernelGroup::getOperands() const {
  llvm::SetVector<Value> operands;
  for (Operation *op : ops)
    for (Value operand : op->getOperands())
      if (!operand.getDefiningOp() || !ops.contains(operand.getDefiningOp()))
        operands.insert(operand);
  return operands.takeVector();
}

Operation *KernelGroup::getPosition() const {
  Operation *position = results[0].getDefiningOp();
  for (Value result : results)
    if (result.getDefiningOp()->isBeforeInBlock(position))
      position = result.getDefiningOp();
  return position;
}

namespace {

bool isLazy(Operation *op) {
  auto inKernel = dyn_cast<KernelOpInterface>(op);
  return inKernel && inKernel.isLazy();
}

bool isAnchor(Operation *op) {
  auto inKernel = dyn_cast<KernelOpInterface>(op);
  return inKernel && !inKernel.isLazy();
}

/// Whether the op slices the end of an axis at an offset that is known only at run time. Indexing maps cannot express
/// such an offset, and contractions are recognised by their maps.
bool startsAnywhere(Operation *op) {
  auto slice = dyn_cast<SliceOp>(op);
  if (!slice || !slice.getAtEnd())
    return false;
  auto extentOf = [&](Value value) { return getExtents(cast<RankedTensorType>(value.getType()))[slice.getAxis()]; };
  return !isa<AffineConstantExpr>(canonicalExtent(extentOf(slice.getX()) - extentOf(slice.getResult())));
}

bool isPointwise(Operation *op) { return hasRole(op, KernelRole::Pointwise); }
bool isMovement(Operation *op) { return hasRole(op, KernelRole::Movement); }

/// Whether the op computes or moves elements, or looks them up at computed indices. Elements at stored indices, as
/// those of a bias of windows, are looked up once, not for each batch.
bool isOfElements(Operation *op) {
  auto gather = dyn_cast<GatherOp>(op);
  return isPointwise(op) || isMovement(op) || isa<PositionsOp>(op) || hasRole(op, KernelRole::View) ||
         (gather && isPointwise(gather.getIndices().getDefiningOp()));
}

ElementCost costOf(Operation *op) { return cast<KernelOpInterface>(op).getElementCost(); }

/// Whether each user may recompute the op. A widening cast is cheaper to recompute than to store: its operand has fewer
/// bytes than its result.
bool isFree(Operation *op) { return costOf(op) == ElementCost::Free || (isa<CastOp>(op) && isDecoding(op)); }

bool haveSameExtents(Value lhs, Value rhs) {
  return getExtents(cast<RankedTensorType>(lhs.getType())) == getExtents(cast<RankedTensorType>(rhs.getType()));
}

class Grouper {
public:
  Grouper(Block &block, const GroupingRules &rules) : block(block), rules(rules) {}

  SmallVector<KernelGroup> run() {
    for (Operation &op : block)
      if (isAnchor(&op) && !op.use_empty() && !memberships.contains(&op))
        startAnchor(&op);
    for (Operation &op : llvm::reverse(block))
      if (isLazy(&op) && !isHostOp(&op) && !op.use_empty() && !memberships.contains(&op) && !isAppended(&op))
        place(&op);
    for (Operation &op : block)
      if (isAppended(&op))
        placeAppended(&op);
    if (rules.normsSingleRows)
      joinNorms();
    if (rules.joinsSums)
      joinSums();
    llvm::erase_if(groups, [](const KernelGroup &group) { return group.ops.empty(); });
    for (KernelGroup &group : groups)
      sortOps(group);
    llvm::sort(groups, [](const KernelGroup &lhs, const KernelGroup &rhs) {
      return lhs.getPosition()->isBeforeInBlock(rhs.getPosition());
    });
    return std::move(groups);
  }

private:
  void sortOps(KernelGroup &group) {
    auto ops = group.ops.takeVector();
    llvm::sort(ops, [](Operation *lhs, Operation *rhs) { return lhs->isBeforeInBlock(rhs); });
    group.ops.insert(ops.begin(), ops.end());
  }

  void add(Operation *op, size_t group) {
    groups[group].ops.insert(op);
    memberships[op].push_back(group);
  }

  size_t start(KernelGroup::Kind kind, Operation *anchor) {
    groups.push_back({kind, anchor, {}, SmallVector<Value>(anchor->getResults())});
    add(anchor, groups.size() - 1);
    return groups.size() - 1;
  }

  void startAnchor(Operation *op) {
    if (hasRole(op, KernelRole::Attention)) {
      start(KernelGroup::Kind::Attention, op);
      return;
    }
    const bool isContraction = hasRole(op, KernelRole::Contraction);
    size_t group = start(isContraction ? KernelGroup::Kind::Contraction : KernelGroup::Kind::RowReduction, op);
    SmallVector<Operation *> epilogue = findEpilogue(op->getResult(0));
    for (Operation *member : epilogue)
      add(member, group);
    if (!epilogue.empty())
      groups[group].results = {epilogue.back()->getResult(0)};
  }

  /// Returns the pointwise ops, in order, from `start` to the last value through which all uses go.
  SmallVector<Operation *> findEpilogue(Value start) {
    SmallVector<Operation *> candidates;
    size_t accepted = 0;
    llvm::SmallPtrSet<Operation *, 8> members{start.getDefiningOp()};
    Operation *last = start.getDefiningOp();
    while (Operation *next = findNextUser(members)) {
      if (!isPointwise(next) || memberships.contains(next) || !haveSameExtents(next->getResult(0), start) ||
          !mayJoin(start.getDefiningOp(), next) || (isCalledByGroup(start.getDefiningOp()) && !readsOwnRows(next)))
        break;
      members.insert(next);
      candidates.push_back(next);
      last = next;
      bool isOnlyResult = llvm::all_of(members, [&](Operation *member) {
        return member == last ||
               llvm::all_of(member->getUsers(), [&](Operation *user) { return members.contains(user); });
      });
      if (isOnlyResult)
        accepted = candidates.size();
    }
    candidates.resize(accepted);
    return candidates;
  }

  /// Whether each group of the op's rows is a separate call.
  bool isCalledByGroup(Operation *anchor) const { return rules.callsGroups && isa<GroupedLinearOp>(anchor); }

  /// Whether the op computes a row of its result from that row of its operands, and from numbers that it may have in
  /// any kernel.
  static bool readsOwnRows(Operation *op) {
    return llvm::all_of(op->getOperands(),
                        [&](Value operand) { return haveSameExtents(operand, op->getResult(0)) || isNumber(operand); });
  }
  static bool isNumber(Value value) {
    Operation *op = value.getDefiningOp();
    return isa_and_nonnull<ConstantOp>(op) && !isHostOp(op) && cast<RankedTensorType>(value.getType()).getRank() == 0;
  }

  /// Returns the first op of the block that uses one of the members and is not a member itself.
  Operation *findNextUser(const llvm::SmallPtrSetImpl<Operation *> &members) {
    Operation *first = nullptr;
    for (Operation *member : members)
      for (Operation *user : member->getUsers()) {
        user = block.findAncestorOpInBlock(*user);
        if (user && !members.contains(user) && (!first || user->isBeforeInBlock(first)))
          first = user;
      }
    return first;
  }

  /// Whether the value is in memory regardless of what reads it.
  bool isStored(Value value) const {
    value = getUnshaped(value);
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != &block || isHostOp(op) || staysInPlace(op))
      return true;
    auto found = memberships.find(op);
    return found != memberships.end() &&
           llvm::any_of(found->second, [&](size_t group) { return llvm::is_contained(groups[group].results, value); });
  }

  /// Returns the minimum and maximum number of elements of the value in a call of the entry.
  std::optional<Interval> elementsOf(Value value) const {
    auto type = cast<RankedTensorType>(value.getType());
    return getBounds(getProduct(getExtents(type), type.getContext()), getSymbolBounds(&block.front()));
  }

  /// Whether the value is so small that one worker copies it as fast as several do.
  bool isSmall(Value value) const {
    auto elements = elementsOf(value);
    return elements && storedBytes(getElementTypeOrSelf(value.getType()), elements->max) <= mostHostCopyBytes;
  }

  /// Whether only kernels, or copies by the entry-point code, read the value, under any shape.
  bool isReadInPlace(Value value) const {
    return llvm::all_of(value.getUsers(), [&](Operation *user) {
      if (auto view = dyn_cast<ReshapeOp>(user))
        return isReadInPlace(view.getResult());
      return isa<AppendOp, SlideOp, StoreOp>(user) ? isSmall(value) : !isHostOp(user);
    });
  }

  /// Whether the op's result needs no kernel: slices of rows are read in place, and a few rows after those of a state
  /// (windows over a stream) are concatenated by the entry-point code.
  bool staysInPlace(Operation *op) const {
    if (rules.writesStates || !isRowsInPlace(op) || !isReadInPlace(op->getResult(0)))
      return false;
    auto isOfState = [](Value value) { return getUnshaped(value).getDefiningOp<StateOp>() != nullptr; };
    if (isa<ConcatOp>(op) && (!isSmall(op->getResult(0)) || llvm::none_of(op->getOperands(), isOfState)))
      return false;
    return llvm::all_of(op->getOperands(), [&](Value operand) { return isStored(operand); });
  }

  /// Joins the groups of the op's users, or starts one.
  void place(Operation *op) {
    const bool staysOutside = staysInPlace(op);
    if (staysOutside && (isa<ConcatOp>(op) || startsAnywhere(op)))
      return;
    llvm::SmallSetVector<size_t, 4> users;
    bool isNeededOutside = false;
    for (Operation *user : op->getUsers()) {
      auto found = memberships.find(user);
      if (user->getBlock() != &block || found == memberships.end()) {
        isNeededOutside = true;
        continue;
      }
      users.insert(found->second.begin(), found->second.end());
    }
    if (isFree(op)) {
      for (size_t group : users)
        if (canTake(groups[group], op))
          add(op, group);
        else
          isNeededOutside = true;
    } else if (!isNeededOutside && users.size() == 1 && canTake(groups[users[0]], op)) {
      add(op, users[0]);
    } else if (!joinAsResult(op, users.getArrayRef())) {
      isNeededOutside = true;
    }
    bool isTaken = memberships.contains(op) && !isFree(op);
    if (isNeededOutside && !isTaken && !staysOutside && !isa<ConstantOp>(op)) // the entry-point code provides constants
                                                                              // itself
      start(KernelGroup::Kind::Pointwise, op);
  }

  /// Whether the group may compute the op's elements where it reads them.
  bool canTake(const KernelGroup &group, Operation *op) {
    if (isCalledByGroup(group.anchor))
      return isNumber(op->getResult(0));
    if (isa<ConstantOp>(op))
      return true;
    if (!mayJoin(group.anchor, op))
      return false;
    bool feedsAnchor = llvm::is_contained(group.anchor->getOperands(), op->getResult(0));
    const bool isUnmapped = startsAnywhere(op) && (feedsAnchor || feedsMovement(group, op));
    switch (group.kind) {
    case KernelGroup::Kind::Attention:
      return (isMovement(op) && !isUnmapped) || isDecoding(op) || computesMask(group, op);
    case KernelGroup::Kind::Contraction:
      return (isMovement(op) && !isUnmapped) ||
             (isPointwise(op) && !feedsAnchor && !feedsMovement(group, op) && !repeatsWork(op));
    default:
      return !repeatsWork(op);
    }
  }

  /// Whether the attention may compute the op for each score: a cheap one on which only its mask depends.
  bool computesMask(const KernelGroup &group, Operation *op) {
    return isOfElements(op) && costOf(op) != ElementCost::Costly && feedsMask(group, op->getResult(0));
  }
  bool feedsMask(const KernelGroup &group, Value value) {
    auto attention = dyn_cast<AttentionOp>(group.anchor);
    return attention && llvm::all_of(value.getUsers(), [&](Operation *user) {
             return user == attention
                        ? attention.getMask() == value && llvm::count(user->getOperands(), value) == 1
                        : group.contains(user) && isOfElements(user) && feedsMask(group, user->getResult(0));
           });
  }

  bool feedsMovement(const KernelGroup &group, Operation *op) {
    return llvm::any_of(op->getUsers(), [&](Operation *user) { return group.contains(user) && isMovement(user); });
  }

  /// Whether a user broadcasts a value that is costly to compute. A value that depends on weights only, such as the
  /// scales of a batch norm, may be recomputed for each of a few rows: that takes less time than a separate kernel.
  bool repeatsWork(Operation *op) {
    return costOf(op) == ElementCost::Costly && llvm::any_of(op->getUsers(), [&](Operation *user) {
             return isPointwise(user) && !haveSameExtents(user->getResult(0), op->getResult(0)) &&
                    !(isOfWeights(op->getResult(0)) && isFewTimes(op->getResult(0), user->getResult(0)));
           });
  }

  static bool isOfWeights(Value value) {
    Operation *op = value.getDefiningOp();
    if (isa_and_nonnull<ParameterOp, ConstantOp>(op))
      return true;
    return op && (isPointwise(op) || isMovement(op) || isa<ReshapeOp>(op)) &&
           llvm::all_of(op->getOperands(), isOfWeights);
  }

  bool isFewTimes(Value part, Value whole) const {
    constexpr int64_t most = 16;
    auto few = elementsOf(part), many = elementsOf(whole);
    return few && many && many->max <= most * few->min;
  }

  /// residual + norm: the sum that a norm and other ops read becomes a second result, if everything that the kernel
  /// reads is available where the sum is computed.
  bool joinAsResult(Operation *op, ArrayRef<size_t> users) {
    if (!isPointwise(op))
      return false;
    for (size_t index : users) {
      KernelGroup &group = groups[index];
      if (!mayJoin(group.anchor, op) || !group.anchor->hasTrait<RowNorm>() ||
          group.anchor->getOperand(0) != op->getResult(0) || group.results.size() != 1)
        continue;
      bool isReady = llvm::all_of(group.getOperands(), [&](Value operand) {
        Operation *producer = operand.getDefiningOp();
        return operand == op->getResult(0) || !producer || producer->getBlock() != &block ||
               producer->isBeforeInBlock(op);
      });
      // No other user of the sum can conflict with the group, since all of them come after it.
      if (!isReady)
        continue;
      add(op, index);
      group.results.insert(group.results.begin(), op->getResult(0));
      return true;
    }
    return false;
  }

  /// Whether the op only slices what is appended to a state.
  bool isAppended(Operation *op) const {
    auto slice = dyn_cast<SliceOp>(op);
    return rules.writesStates && slice && !op->use_empty() && llvm::all_of(op->getUsers(), [](Operation *user) {
             auto view = dyn_cast<ReshapeOp>(user);
             return view ? llvm::all_of(view->getUsers(), llvm::IsaPred<AppendOp>) : isa<AppendOp>(user);
           });
  }

  /// Joins the group that produces the sliced value, or starts one.
  void placeAppended(Operation *op) {
    for (auto [number, group] : llvm::enumerate(groups))
      if (group.kind != KernelGroup::Kind::Attention && llvm::is_contained(group.results, op->getOperand(0))) {
        group.results.push_back(op->getResult(0));
        return add(op, number);
      }
    start(KernelGroup::Kind::Pointwise, op);
  }

  /// Fuses a short norm of one row that only contractions read into them: they become one group, each thread block of
  /// which recomputes the norm. A long norm takes more time this way than as a separate kernel.
  void joinNorms() {
    for (size_t norm = 0; norm < groups.size(); ++norm)
      if (SmallVector<size_t> products = findProducts(groups[norm]); !products.empty() && isReady(norm, products)) {
        KernelGroup &joined = groups[products.front()];
        auto take = [&](KernelGroup &other) {
          joined.ops.insert(other.ops.begin(), other.ops.end());
          other.ops.clear();
        };
        for (size_t product : ArrayRef(products).drop_front()) {
          llvm::append_range(joined.results, groups[product].results);
          take(groups[product]);
        }
        take(groups[norm]);
        llvm::erase_if(joined.results, [&](Value result) {
          return llvm::all_of(result.getUsers(), [&](Operation *user) { return joined.contains(user); });
        });
      }
  }

  /// Returns the groups of the contractions of a norm of one row, if nothing else reads the norm.
  SmallVector<size_t> findProducts(const KernelGroup &group) const {
    llvm::SmallSetVector<size_t, 2> products;
    const bool isAlone =
        llvm::all_of(group.ops, [&](Operation *op) { return op == group.anchor || isa<ConstantOp>(op); });
    if (group.ops.empty() || !isAlone || !group.anchor->hasTrait<RowNorm>() || group.results.size() != 1)
      return {};
    Value norm = group.results[0];
    auto type = cast<RankedTensorType>(norm.getType());
    constexpr int64_t mostElements = 1024;
    if (!type.hasStaticShape() || type.getNumElements() != type.getShape().back() ||
        type.getNumElements() > mostElements)
      return {};
    for (OpOperand &use : norm.getUses()) {
      auto found = memberships.find(use.getOwner());
      if (found == memberships.end() || found->second.size() != 1 || use.getOperandNumber() != 0)
        return {};
      const KernelGroup &product = groups[found->second.front()];
      if (product.kind != KernelGroup::Kind::Contraction || product.anchor != use.getOwner() ||
          !isa<LinearOp>(product.anchor))
        return {};
      products.insert(found->second.front());
    }
    return products.takeVector();
  }

  /// Fuses a sum of few elements that only another sum reads, under any shape, into that sum: by itself it would take
  /// less time than a kernel call. Also fuses an op that broadcasts the few resulting elements.
  void joinSums() {
    for (KernelGroup &first : groups) {
      SmallVector<Operation *> views;
      if (KernelGroup *second = findSumOf(first, views)) {
        second->ops.insert(first.ops.begin(), first.ops.end());
        second->ops.insert(views.begin(), views.end());
        first.ops.clear();
      }
    }
    for (KernelGroup &sum : groups) {
      SmallVector<Operation *> views;
      if (KernelGroup *repeated = findRepeated(sum, views)) {
        sum.ops.insert(views.begin(), views.end());
        sum.ops.insert(repeated->ops.begin(), repeated->ops.end());
        sum.results = repeated->results;
        repeated->ops.clear();
      }
    }
  }

  /// Whether the group's only result comes from a sum or a mean and its pointwise epilogue.
  static bool isSum(const KernelGroup &group) {
    return !group.ops.empty() && isa<SumOp, MeanOp>(group.anchor) && group.results.size() == 1;
  }

  /// Returns the only reader of the value if it is in this block; adds the views that it reads through to `views`.
  Operation *findReader(Value value, SmallVectorImpl<Operation *> &views) const {
    Operation *user = value.hasOneUse() ? *value.user_begin() : nullptr;
    while (user && isa<ReshapeOp>(user)) {
      views.push_back(user);
      user = user->hasOneUse() ? *user->user_begin() : nullptr;
    }
    return user && user->getBlock() == &block ? user : nullptr;
  }

  /// Returns the group of the sum that is the only reader of the group's sum.
  KernelGroup *findSumOf(const KernelGroup &group, SmallVectorImpl<Operation *> &views) {
    constexpr int64_t fewElements = 1 << 16, fewResults = 1 << 12;
    Operation *user = isSum(group) ? findReader(group.results[0], views) : nullptr;
    auto found = memberships.find(user);
    auto elements = elementsOf(group.anchor->getOperand(0)), results = elementsOf(group.anchor->getResult(0));
    if (!user || !isa<SumOp, MeanOp>(user) || found == memberships.end() || !elements || !results ||
        (elements->max > fewElements && results->max > fewResults))
      return nullptr;
    KernelGroup &second = groups[found->second.front()];
    return second.anchor == user && mayJoin(user, group.anchor) ? &second : nullptr;
  }

  /// Returns the group that just broadcasts the elements of the group's sum, if these are few.
  KernelGroup *findRepeated(const KernelGroup &group, SmallVectorImpl<Operation *> &views) {
    auto repeats = dyn_cast_or_null<ExpandOp>(isSum(group) ? findReader(group.results[0], views) : nullptr);
    auto found = memberships.find(repeats);
    if (!repeats || found == memberships.end() || found->second.size() != 1 || !isSmall(repeats.getResult()) ||
        !mayJoin(group.anchor, repeats))
      return nullptr;
    KernelGroup &repeated = groups[found->second.front()];
    return repeated.ops.size() == 1 ? &repeated : nullptr;
  }

  /// Whether the inputs of the norm and the contractions are available before the first of the contractions' results is
  /// used.
  bool isReady(size_t norm, ArrayRef<size_t> products) const {
    Operation *first = groups[products.front()].getPosition();
    for (size_t product : products)
      if (Operation *position = groups[product].getPosition(); position->isBeforeInBlock(first))
        first = position;
    auto isOwn = [&](Operation *op) {
      return groups[norm].contains(op) ||
             llvm::any_of(products, [&](size_t product) { return groups[product].contains(op); });
    };
    auto isThere = [&](Value operand) {
      Operation *producer = operand.getDefiningOp();
      return !producer || producer->getBlock() != &block || isOwn(producer) || producer->isBeforeInBlock(first);
    };
    return llvm::all_of(groups[norm].getOperands(), isThere) &&
           llvm::all_of(products, [&](size_t product) { return llvm::all_of(groups[product].getOperands(), isThere); });
  }

  bool mayJoin(Operation *anchor, Operation *op) const { return !rules.mayJoin || rules.mayJoin(anchor, op); }

  Block &block;
  const GroupingRules &rules;
  SmallVector<KernelGroup> groups;
  DenseMap<Operation *, SmallVector<size_t, 1>> memberships;
};

} // namespace

SmallVector<KernelGroup> groupKernels(Block &block, const GroupingRules &rules) { return Grouper(block, rules).run(); }

} // namespace mlir::kiln
