// SPDX-License-Identifier: Apache-2.0
//
// 1. Number the steps and find the first and last step of every value. A stacked result is live from the begin of its
// loop, and a sequence to the end of it.
// 2. The initial, carried, yielded and resulting value of a loop share a buffer, or a conflict is recorded. It also is
// a conflict if a value to be stacked is not the result of a call, of a custom function, of an all-gather or of
// stacking in an inner loop, or would need two places.
// 3. An all-reduce shares the buffer of its operand, or a conflict is recorded. It also is a conflict if the operand of
// a begun reduction has other readers.
// 4. A call's result that is stored in a state or assigned to a weight is written there directly if nothing reads the
// previous value afterwards; so is one that slides into a state.
// 5. A call's result shares the buffer of an argument that it may overwrite and that nothing reads afterwards.
// 6. A returned value is written to the caller's memory directly, or a conflict is recorded; so it is for a state that
// is stored in a state.
//
// A sent value must not change until the next op that waits for stages. For a loop with such a wait this is before each
// iteration; else it is the wait after the loop. A loop ahead of its follower counts as one loop with it: values from
// outside of either are read until both end.
//
// Two values may share a buffer if one is dead when the other is written.
#include "compiler/transforms/ShareBuffers.h"

#include "compiler/kernel/KernelFunction.h"
#include "compiler/transforms/PlanMemory.h"
#include "compiler/transforms/RowsInPlace.h"

namespace mlir::kiln {

bool isRowsInPlace(Operation *op) {
  const bool isSlice = isa<SliceOp>(op);
  if (!isSlice && !isa<ConcatOp>(op))
    return false;
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  const auto axis = static_cast<size_t>(isSlice ? cast<SliceOp>(op).getAxis() : cast<ConcatOp>(op).getAxis());
  auto isStoredPlain = [](Value value) {
    auto tensor = cast<RankedTensorType>(value.getType());
    return !isa_and_nonnull<TiledAttr>(tensor.getEncoding()) &&
           storedBytes(tensor.getElementType(), 8) == 8 * storedBytes(tensor.getElementType(), 1);
  };
  const SmallVector<AffineExpr> extents = getExtents(type);
  return llvm::all_of(ArrayRef(extents).take_front(axis), [](AffineExpr extent) { return isConstant(extent, 1); }) &&
         llvm::all_of(op->getOperands(), isStoredPlain);
}

Value getSource(Value tensor) {
  Operation *op = tensor.getDefiningOp();
  return isa_and_nonnull<ReshapeOp, BeginReduceOp, FinishOp>(op)
             ? op->getOperand(cast<OpResult>(tensor).getResultNumber())
             : Value();
}

static Value getReshaped(Value tensor) {
  while (Value source = getSource(tensor))
    tensor = source;
  return tensor;
}

/// Returns the value that a use renames, or some rows of it; null if the use does anything else.
static Value getAlias(OpOperand &use) {
  Operation *op = use.getOwner();
  return isa<ReshapeOp, BeginReduceOp, FinishOp, SliceOp>(op) ? op->getResult(use.getOperandNumber()) : Value();
}

/// Whether the tensor is a slice of rows of another one, in its memory.
static bool isPart(Value tensor) {
  while (Operation *op = tensor.getDefiningOp()) {
    if (isa<SliceOp>(op))
      return true;
    Value source = getSource(tensor);
    if (!source)
      break;
    tensor = source;
  }
  return false;
}

/// Whether the value is written iteration by iteration while its loop runs.
static bool isStacked(Value result) {
  auto loop = result.getDefiningOp<LoopInterface>();
  return loop && llvm::is_contained(loop.getStacked(), result);
}

/// Whether a value that a loop stacks can be written to the stacked result directly: it has no other place.
static bool isFree(Value tensor) {
  Operation *maker = tensor.getDefiningOp();
  return isa_and_nonnull<CallOp, AllGatherOp, ArgsortOp, ConcatOp, CustomOp, IndexAddOp, ReceiveOp, ScatterAddOp>(
             maker) ||
         (isa_and_nonnull<RepeatOp, ScanOp>(maker) && isStacked(tensor));
}

std::optional<LoopStep> getLoopStep(Value tensor) {
  if (auto argument = dyn_cast<BlockArgument>(tensor)) {
    auto loop = dyn_cast<LoopInterface>(argument.getOwner()->getParentOp());
    if (!loop || argument.getArgNumber() < loop.getNumCarried())
      return std::nullopt;
    return LoopStep{loop, loop.getSequences()[argument.getArgNumber() - loop.getNumCarried()]};
  }
  auto loop = isFree(tensor) ? dyn_cast<LoopInterface>(tensor.getDefiningOp()->getParentOp()) : LoopInterface();
  if (loop)
    for (auto [yielded, stacked] : llvm::zip_equal(loop.getYieldedOutputs(), loop.getStacked()))
      if (getReshaped(yielded) == tensor)
        return LoopStep{loop, stacked};
  return std::nullopt;
}

ScanOp getFollower(ScanOp ahead) {
  for (Operation *op = ahead->getNextNode(); op; op = op->getNextNode())
    if (auto next = dyn_cast<ScanOp>(op))
      return next;
  return {};
}

bool isFollower(ScanOp loop) {
  for (Operation *op = loop->getPrevNode(); op; op = op->getPrevNode())
    if (auto before = dyn_cast<ScanOp>(op))
      return before.getAhead() > 0;
  return false;
}

int64_t getKeptSlices(Value stacked) {
  stacked = getReshaped(stacked);
  auto loop = stacked.getDefiningOp<ScanOp>();
  return loop && isStacked(stacked) ? static_cast<int64_t>(loop.getAhead()) : 0;
}

SmallVector<AffineExpr> getKeptExtents(Value value) {
  SmallVector<AffineExpr> extents = getExtents(cast<RankedTensorType>(value.getType()));
  if (const int64_t kept = getKeptSlices(value))
    extents.front() = getAffineConstantExpr(kept, value.getContext());
  return extents;
}

Value getViewed(Value tensor) {
  while (true) {
    tensor = getReshaped(tensor);
    if (auto slice = tensor.getDefiningOp<SliceOp>()) {
      tensor = slice.getX();
      continue;
    }
    std::optional<LoopStep> step = getLoopStep(tensor);
    if (!step)
      return tensor;
    tensor = step->whole;
  }
}

BufferSharing::BufferSharing(func::FuncOp entry) : entry(entry), bounds(getSymbolBounds(entry)) {
  number(entry.getBody().front());
  findLastUses();
  keepSent();
  shareLoops();
  shareSums();
  findHomes();
  shareInPlace();
  shareOutputs();
  keepStates();
}

void BufferSharing::addNode(Value value, int first) {
  auto type = cast<RankedTensorType>(value.getType());
  AffineExpr elements = getProduct(getKeptExtents(value), type.getContext());
  auto interval = getBounds(elements, bounds);
  int64_t most = interval ? interval->max : 0; // without bounds there is no plan: MemoryPlan::compute reports it
  nodeOf[value] = nodes.size();
  buffers.push_back({static_cast<unsigned>(nodes.size())});
  int64_t bytes = llvm::alignTo(storedBytes(type.getElementType(), most), 64);
  nodes.push_back({value, first, first, bytes, elements, static_cast<unsigned>(nodes.size())});
}

int BufferSharing::addStep(Operation *op) {
  const int step = steps.size();
  steps.push_back(op);
  stepsOf[op] = {step, step};
  return step;
}

void BufferSharing::number(Block &block) {
  for (Operation &op : block) {
    if (auto call = dyn_cast<CallOp>(op)) {
      const int step = addStep(&op);
      for (Value result : call.getResults())
        if (!getLoopStep(result))
          addNode(result, step);
      calls.push_back(call);
    } else if (auto loop = dyn_cast<LoopInterface>(op)) {
      const int begin = addStep(&op);
      for (Value carried : loop.getCarried())
        addNode(carried, begin);
      number(op.getRegion(0).front());
      const int end = addStep(loop.getYield());
      stepsOf[&op] = {begin, end};
      for (Value result : op.getResults())
        if (!getLoopStep(result))
          addNode(result, isStacked(result) ? begin : end);
      loops.push_back(loop); // inner loops first
    } else if (isa<AllReduceOp, AllGatherOp, ArgsortOp, ConcatOp, IndexAddOp, ReduceScatterOp, ScatterAddOp>(op)) {
      const int step = addStep(&op);
      if (!getLoopStep(op.getResult(0)))
        addNode(op.getResult(0), step);
      if (isa<AllReduceOp>(op))
        sums.push_back(&op);
    } else if (isa<CustomOp, ReceiveOp>(op)) {
      const int step = addStep(&op);
      for (Value value : op.getResults())
        if (!getLoopStep(value))
          addNode(value, step);
    } else if (isa<AppendOp, AssignOp, BeginReduceOp, FinishOp, RequireFiniteOp, SendOp, SlideOp, StoreOp,
                   func::ReturnOp>(op)) {
      addStep(&op);
      if (isa<BeginReduceOp>(op))
        begun.push_back(&op);
      if (auto send = dyn_cast<SendOp>(op))
        sent.push_back(send);
    }
  }
}

/// Returns the step of the read. A use inside a loop of a value from outside lasts to the loop's end, and so does the
/// use of a sequence.
int BufferSharing::getStep(OpOperand &use, Block *definer) const {
  Operation *owner = use.getOwner();
  auto loop = dyn_cast<LoopInterface>(owner);
  if (owner->getBlock() == definer && !(loop && use.getOperandNumber() >= loop.getNumCarried()))
    return stepsOf.lookup(owner).first;
  Operation *reader = definer->findAncestorOpInBlock(*owner);
  if (auto ahead = dyn_cast<ScanOp>(reader); ahead && ahead.getAhead() > 0)
    reader = getFollower(ahead);
  return stepsOf.lookup(reader).second;
}

void BufferSharing::findLastUses() {
  for (Node &node : nodes) {
    SmallVector<Value> aliases{node.value};
    while (!aliases.empty()) {
      for (OpOperand &use : aliases.pop_back_val().getUses()) {
        if (Value alias = getAlias(use))
          aliases.push_back(alias);
        if (!isa<ReshapeOp, SliceOp>(use.getOwner()))
          node.last = std::max(node.last, getStep(use, node.value.getParentBlock()));
      }
    }
  }
}

/// Whether the op waits for all communication begun with other stages. An entry also waits before it returns.
static bool waitsForStages(Operation &op) {
  auto sum = dyn_cast<AllReduceOp>(op);
  return isa<ReceiveOp, func::ReturnOp>(op) || (sum && sum.getOver() == Group::Stages);
}

/// Returns the op that waits for sent values, unless the begin of the loop's next iteration does.
static Operation *getWait(SendOp send) {
  Operation *op = send;
  while (!isa<func::FuncOp>(op->getParentOp()))
    op = op->getParentOp();
  if (auto ahead = dyn_cast<ScanOp>(op); ahead && ahead.getAhead() > 0) {
    Block &follower = getFollower(ahead).getBody().front();
    if (auto wait = llvm::find_if(follower, waitsForStages); wait != follower.end())
      return &*wait;
  }
  do
    op = op->getNextNode();
  while (!waitsForStages(*op));
  return op;
}

void BufferSharing::keepSent() {
  for (SendOp send : sent)
    for (Value value : send.getValues())
      if (auto found = nodeOf.find(getViewed(value)); found != nodeOf.end())
        nodes[found->second].last = std::max(nodes[found->second].last, stepsOf.lookup(getWait(send)).first);
}

/// Whether the later value may reuse the buffer of the earlier one.
bool BufferSharing::mayShare(const Node &earlier, const Node &later) const {
  if (earlier.last != later.first)
    return earlier.last < later.first;
  // The boundary of a loop.
  if (auto carried = dyn_cast<BlockArgument>(later.value)) {
    return getViewed(carried.getOwner()->getParentOp()->getOperand(carried.getArgNumber())) == earlier.value;
  }
  auto result = cast<OpResult>(later.value);
  if (auto loop = dyn_cast<LoopInterface>(result.getOwner()))
    return getViewed(loop.getYield()->getOperand(result.getResultNumber())) == earlier.value;
  if (isa<AllReduceOp>(result.getOwner()))
    return getViewed(result.getOwner()->getOperand(0)) == earlier.value;
  auto call = dyn_cast<CallOp>(result.getOwner());
  if (!call)
    return false;
  auto kernel = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
  ArrayRef<int64_t> inPlace = ::kiln::KernelFunction(kernel).inPlace();
  if (call.getEnds() && getViewed(call.getEnds()) == earlier.value)
    return false; // read before each group's call
  FunctionType type = kernel.getFunctionType();
  Type written = type.getResult(result.getResultNumber());
  for (auto [i, argument] : llvm::enumerate(call.getArguments()))
    if (getViewed(argument) == earlier.value &&
        (!llvm::is_contained(inPlace, i) || type.getInput(call.getExtents().size() + i) != written))
      return false;
  return true;
}

bool BufferSharing::tryShare(Value lhs, Value rhs) {
  if (isPart(lhs) || isPart(rhs))
    return false;
  auto left = nodeOf.find(getViewed(lhs)), right = nodeOf.find(getViewed(rhs));
  if (left == nodeOf.end() || right == nodeOf.end())
    return false; // an input, a weight or a constant: must not be written
  unsigned into = nodes[left->second].buffer, from = nodes[right->second].buffer;
  if (into == from)
    return true;
  if (homes.contains(into) || homes.contains(from))
    return false;
  for (unsigned i : buffers[into])
    for (unsigned j : buffers[from]) {
      const Node &a = nodes[i], &b = nodes[j];
      if (a.elements != b.elements || a.bytes != b.bytes || (!mayShare(a, b) && !mayShare(b, a)))
        return false;
    }
  for (unsigned j : buffers[from])
    nodes[j].buffer = into;
  llvm::append_range(buffers[into], buffers[from]);
  buffers[from].clear();
  return true;
}

/// Whether the result of a call, a sum of rows or a copy is written for this op only.
static bool isOwn(Value tensor, Operation *reader) {
  for (; tensor.hasOneUse(); tensor = tensor.getDefiningOp<ReshapeOp>().getX())
    if (!tensor.getDefiningOp<ReshapeOp>())
      return isa_and_nonnull<CallOp, ArgsortOp, ConcatOp, IndexAddOp, ScatterAddOp>(tensor.getDefiningOp()) &&
             tensor.getParentBlock() == reader->getBlock();
  return false;
}

/// Whether the value is a begun reduction whose operand will be copied first.
static bool isBegunOfCopy(Value tensor) {
  for (; Value source = getSource(tensor); tensor = source)
    if (auto begun = tensor.getDefiningOp<BeginReduceOp>())
      return !isOwn(begun.getX(), begun);
  return false;
}

void BufferSharing::shareLoops() {
  for (LoopInterface loop : loops) {
    for (Value stacked : loop.getStacked()) {
      OpOperand &yielded = loop.getYield()->getOpOperand(cast<OpResult>(stacked).getResultNumber());
      if (isBegunOfCopy(yielded.get()))
        continue;
      std::optional<LoopStep> step = getLoopStep(getReshaped(yielded.get()));
      if (!step || step->whole != stacked)
        conflicts.push_back(&yielded);
    }
    for (auto [i, carried] : llvm::enumerate(loop.getCarried())) {
      OpOperand &yielded = loop.getYield()->getOpOperand(i), &init = loop->getOpOperand(i);
      tryShare(carried, loop->getResult(i));
      if (!tryShare(carried, yielded.get()))
        conflicts.push_back(&yielded);
      if (!tryShare(carried, init.get()))
        conflicts.push_back(&init);
    }
  }
}

void BufferSharing::shareSums() {
  for (Operation *op : begun)
    if (!isOwn(op->getOperand(0), op))
      conflicts.push_back(&op->getOpOperand(0));
  for (Operation *sum : sums)
    if (!tryShare(sum->getOperand(0), sum->getResult(0)))
      conflicts.push_back(&sum->getOpOperand(0));
}

SmallVector<Attribute> getMemoryNames(Operation *op) {
  if (isa<AppendOp, SlideOp, StateOp, StoreOp>(op))
    return {op->getAttr("name")};
  if (auto assign = dyn_cast<AssignOp>(op))
    op = assign.getParameter().getDefiningOp();
  if (auto parameter = dyn_cast<ParameterOp>(op))
    return llvm::to_vector(parameter.getSources());
  return {};
}

/// Whether a result of this type may overwrite the call's argument.
static bool isWrittenInPlace(CallOp call, OpOperand &use, Type written) {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
  const int64_t argument = static_cast<int64_t>(use.getOperandNumber() - call.getExtents().size());
  return llvm::is_contained(::kiln::KernelFunction(kernel).inPlace(), argument) && use.get().getType() == written &&
         !isPart(use.get());
}

/// Returns all uses of a tensor, looking through aliases.
static SmallVector<OpOperand *> getReads(Value tensor) {
  SmallVector<OpOperand *> reads;
  SmallVector<Value> aliases{tensor};
  while (!aliases.empty())
    for (OpOperand &use : aliases.pop_back_val().getUses())
      if (Value alias = getAlias(use))
        aliases.push_back(alias);
      else
        reads.push_back(&use);
  return reads;
}

/// Whether a call's result may be written where `store` would copy it: all reads of the previous contents come before
/// the call, or are arguments of it that may be overwritten; no later op can end the entry with an error status
/// (non-finite values, or a lost replica whose weights are gathered); and the result needs no other place.
bool BufferSharing::mayBeAtHome(OpResult result, Operation *store) const {
  auto call = cast<CallOp>(result.getOwner());
  const int at = stepsOf.lookup(call).first;
  const Attribute home = getMemoryNames(store).front();
  auto isEarlier = [&](OpOperand *use) {
    Operation *owner = use->getOwner();
    return owner == store || (owner == call.getOperation() ? isWrittenInPlace(call, *use, result.getType())
                                                           : !isa<LoopInterface>(owner) && stepsOf.contains(owner) &&
                                                                 stepsOf.lookup(owner).first < at);
  };
  auto isInTheWay = [&](Operation *op) {
    auto gather = dyn_cast<AllGatherOp>(op);
    if (isa<RequireFiniteOp>(op) || (gather && gather.getOver() == Group::Replicas && isa<AssignOp>(store)))
      return stepsOf.lookup(op).first > at;
    if (op == store || !llvm::is_contained(getMemoryNames(op), home))
      return false;
    return isa<AppendOp, AssignOp, SlideOp, StoreOp>(op) || !llvm::all_of(getReads(op->getResult(0)), isEarlier);
  };
  return llvm::none_of(getReads(result),
                       [](OpOperand *use) { return isa<YieldOp, func::ReturnOp>(use->getOwner()); }) &&
         !entry->walk([&](Operation *op) { return isInTheWay(op) ? WalkResult::interrupt() : WalkResult::advance(); })
              .wasInterrupted();
}

/// Whether a call's result may be written where `slide` would copy it, after the rows of a state, which nothing else
/// writes to: all reads of the result come before the state is replaced, and the result needs no other place.
static bool mayBeAfterState(OpResult result, SlideOp slide) {
  Block *block = slide->getBlock();
  auto stores = block->getOps<StoreOp>();
  auto store = llvm::find_if(stores, [&](StoreOp each) { return getSlide(each) == slide; });
  return llvm::all_of(getReads(result), [&](OpOperand *use) {
    Operation *reader = block->findAncestorOpInBlock(*use->getOwner());
    return reader && !isa<YieldOp, func::ReturnOp>(use->getOwner()) &&
           (store == stores.end() || reader->isBeforeInBlock(*store));
  });
}

/// Whether the append takes all columns of the operand, so that its rows are contiguous.
static bool appendsAll(AppendOp append) {
  auto rows = cast<RankedTensorType>(append.getX().getType());
  return rows.getRank() == 1 || getExtents(rows).back() == getExtents(cast<RankedTensorType>(append.getType())).back();
}

void BufferSharing::findHomes() {
  entry.walk([&](Operation *op) {
    if (!isa<AppendOp, AssignOp, SlideOp, StoreOp>(op) || (isa<AppendOp>(op) && !appendsAll(cast<AppendOp>(op))) ||
        (isa<StoreOp>(op) && cast<StoreOp>(op).getFlushed()))
      return;
    Value value = getReshaped(op->getOperand(0));
    auto node = nodeOf.find(value);
    auto call = value.getDefiningOp<CallOp>();
    if (!call || node == nodeOf.end() || call->getBlock() != op->getBlock())
      return;
    const unsigned buffer = nodes[node->second].buffer;
    if (buffers[buffer].size() != 1 || homes.contains(buffer))
      return;
    auto slide = dyn_cast<SlideOp>(op);
    if (slide ? mayBeAfterState(cast<OpResult>(value), slide) : mayBeAtHome(cast<OpResult>(value), op))
      homes[buffer] = op;
  });
}

void BufferSharing::shareInPlace() {
  for (CallOp call : calls) {
    auto kernel = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
    for (Value result : call.getResults())
      for (int64_t number : ::kiln::KernelFunction(kernel).inPlace())
        tryShare(call.getArguments()[number], result);
  }
}

/// Records a conflict where a state is stored to another place: it may have been replaced by then. Rows that stay in
/// place are exempt.
void BufferSharing::keepStates() {
  entry.walk([&](StoreOp store) {
    if (isa_and_nonnull<SlideOp, StateOp>(getViewed(store.getX()).getDefiningOp()) && !getSlide(store))
      conflicts.push_back(&store.getXMutable());
  });
}

void BufferSharing::shareOutputs() {
  for (OpOperand &operand : entry.getBody().front().getTerminator()->getOpOperands()) {
    auto node = nodeOf.find(getViewed(operand.get()));
    if (node == nodeOf.end() || isPart(operand.get()) ||
        !outputs.try_emplace(nodes[node->second].buffer, operand.getOperandNumber()).second)
      conflicts.push_back(&operand);
  }
}

} // namespace mlir::kiln
