// SPDX-License-Identifier: Apache-2.0
//
// 1. A parallel op is computed where it is used if it is used once, element by element, or costs no more than a load
//    of its result. So is a reduction that a parallel op reads once, element by element: that op is its epilogue.
// 2. All other values are stored: in a result if they are returned, else in scratch memory.
// 3. A result that may share the memory of an argument must not be written before the argument has been read. Where
//    that would happen, the result goes through scratch memory.
// 4. Values in scratch memory get offsets: values with disjoint live ranges share it.
#include "targets/cuda/plan/KernelStages.h"

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
#include "compiler/kernel/CumulativeSum.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"

namespace kiln::cuda {

using namespace mlir;

/// About the cost of a load, in operations of a thread.
static constexpr int64_t cheap = 6;
/// The alignment of scratch memory, in bytes: a warp's access.
static constexpr int64_t alignment = 128;

Placement::Placement(const DecomposedKernel &decomposed)
    : attention(decomposed.attention()), kernel(decomposed.get()), symbols(KernelFunction(kernel).numSymbols()) {
  arguments = kernel.getNumArguments() - symbols;
  for (BlockArgument argument : KernelFunction(kernel).tensors())
    places[argument] = {Parameter::Tensor, int64_t(argument.getArgNumber() - symbols)};
  for (auto [number, value] : llvm::enumerate(KernelFunction(kernel).results()))
    if (value.getDefiningOp<linalg::GenericOp>())
      places.try_emplace(value, Parameter{Parameter::Tensor, int64_t(arguments + number)});
  for (linalg::GenericOp op : kernel.getOps<linalg::GenericOp>())
    place(op);
  findWindows();
  copyResults();
  keepArguments();
  assignScratch(llvm::to_vector(llvm::seq<size_t>(0, stages.size())));
}

std::optional<Parameter> Placement::find(Value value) const {
  auto found = places.find(value);
  return found == places.end() ? std::nullopt : std::optional(found->second);
}

bool Placement::isInPlace(const Parameter &place) const {
  return place.kind == Parameter::Tensor && llvm::is_contained(KernelFunction(kernel).inPlace(), place.number);
}

bool Placement::isRead(const KernelStage &stage, Value value) const {
  return llvm::any_of(readsOf(stage), [&](const Read &read) { return read.tensor == value; });
}

void Placement::assignLaunches(ArrayRef<size_t> launches, ArrayRef<Value> unstored) {
  for (Value value : unstored)
    places.erase(value);
  for (KernelStage &stage : stages)
    llvm::erase_if(stage.stores, [&](const Store &store) { return llvm::is_contained(unstored, store.value); });
  assignScratch(launches);
}

//===- Fusion ------------------------------------------------------------===//

static int64_t costOf(Operation &op) {
  if (isa<arith::ConstantOp, linalg::IndexOp>(op))
    return 0;
  return isa<arith::DivFOp, arith::DivSIOp, arith::RemSIOp, arith::FloorDivSIOp, math::SqrtOp, math::RsqrtOp>(op) ? 8
                                                                                                                  : 1;
}

bool Placement::reduces(linalg::GenericOp op) const {
  return op.getNumReductionLoops() || llvm::any_of(op->getOperands(), [&](Value operand) {
           auto producer = operand.getDefiningOp<linalg::GenericOp>();
           return producer && !places.contains(operand) && reduces(producer);
         });
}

/// Returns the cost of an element without a loop: a load, or the operations.
int64_t Placement::costOf(Value tensor) const {
  auto op = tensor.getDefiningOp<linalg::GenericOp>();
  if (!op)
    return tensor.getDefiningOp<linalg::FillOp>() ? 0 : 1;
  if (places.contains(tensor))
    return 1;
  int64_t cost = 0;
  for (OpOperand &operand : op->getOpOperands())
    if (!op.getMatchingBlockArgument(&operand).use_empty())
      cost += costOf(operand.get());
  for (Operation &inner : op.getBlock()->without_terminator()) {
    auto extract = dyn_cast<tensor::ExtractOp>(inner);
    cost += extract ? costOf(extract.getTensor()) + 4 * extract.getIndices().size() : cuda::costOf(inner);
  }
  return cost;
}

/// Whether the use reads each element once. A cumulative sum does so: its axis is one loop of the code that computes
/// it.
static bool readsOnce(OpOperand &use) {
  auto user = dyn_cast<linalg::GenericOp>(use.getOwner());
  if (!user)
    return false;
  AffineMap map = operandMap(use);
  std::optional<CumulativeSum> sum = asCumulativeSum(user);
  return map.isProjectedPermutation() && map.getNumResults() + (sum ? 1 : 0) == user.getNumLoops() &&
         !(sum && map.isFunctionOfDim(sum->axis));
}

/// Whether the op is a contraction. A sum of differences from an element of each row has two inputs, too.
static bool multiplies(linalg::GenericOp op) {
  return op.getNumReductionLoops() && op.getNumDpsInputs() == 2 &&
         llvm::any_of(*op.getBlock(), llvm::IsaPred<arith::MulFOp, arith::MulIOp>);
}

/// Whether a user of the result already computes another reduction in place: a user fuses only one.
bool Placement::isNextToProduct(linalg::GenericOp op) const {
  return multiplies(op) && llvm::any_of(op->getUsers(), [&](Operation *user) {
           return llvm::any_of(user->getOperands(), [&](Value operand) {
             auto producer = operand.getDefiningOp<linalg::GenericOp>();
             return producer && producer != op && producer->isBeforeInBlock(op) && !places.contains(operand) &&
                    reduces(producer);
           });
         });
}

/// Whether a contraction reads elements that depend on a stored value of their row, as those of a norm do.
bool Placement::isNormOfProduct(linalg::GenericOp op) const {
  const bool takesRow = llvm::any_of(op->getOpOperands(), [&](OpOperand &operand) {
    return operand.get().getDefiningOp<linalg::GenericOp>() && places.contains(operand.get()) &&
           operandMap(operand).getNumResults() < op.getNumLoops();
  });
  return takesRow && llvm::any_of(op->getUsers(), [](Operation *user) {
           auto product = dyn_cast<linalg::GenericOp>(user);
           return product && multiplies(product);
         });
}

bool Placement::isComputed(linalg::GenericOp op) const {
  if (llvm::any_of(op->getResults(), [&](Value result) { return places.contains(result); }))
    return false;
  if (op->use_empty())
    return true;
  if (isNextToProduct(op) || isNormOfProduct(op))
    return false;
  const bool isReadOnce = op->hasOneUse() && readsOnce(*op->getUses().begin());
  if (reduces(op)) // in a loop it would move the work of many threads to one
    return isReadOnce && cast<linalg::GenericOp>(*op->getUsers().begin()).getNumReductionLoops() == 0;
  return isReadOnce || costOf(op->getResult(0)) <= cheap;
}

void Placement::place(linalg::GenericOp op) {
  if (isComputed(op))
    return;
  KernelStage stage{op, {}};
  for (Value result : op->getResults()) {
    if (result.use_empty())
      continue;
    auto known = places.try_emplace(result, Parameter{Parameter::Scratch, scratchValues});
    scratchValues += known.second;
    stage.stores.push_back({result, known.first->second});
  }
  stages.push_back(std::move(stage));
}

/// Returns an index in an op's region over its loops; null unless it is a sum of loops and constants.
static AffineExpr overLoops(Value index) {
  MLIRContext *context = index.getContext();
  if (auto loop = index.getDefiningOp<linalg::IndexOp>())
    return getAffineDimExpr(loop.getDim(), context);
  if (auto constant = index.getDefiningOp<arith::ConstantIndexOp>())
    return getAffineConstantExpr(constant.value(), context);
  auto add = index.getDefiningOp<arith::AddIOp>();
  AffineExpr left = add ? overLoops(add.getLhs()) : AffineExpr(), right = left ? overLoops(add.getRhs()) : AffineExpr();
  return right ? left + right : AffineExpr();
}

namespace {

/// What an op copies: the source, and the source's indices over the op's loops.
struct Copied {
  Value whole;
  SmallVector<AffineExpr> at;
};

} // namespace

/// Returns a null source if the op is not a copy.
static Copied findCopied(linalg::GenericOp op) {
  Value element = cast<linalg::YieldOp>(op.getBlock()->getTerminator()).getOperand(0);
  if (auto narrow = element.getDefiningOp<arith::TruncFOp>()) // a conversion back to the original type
    if (auto wide = narrow.getIn().getDefiningOp<arith::ExtFOp>(); wide && wide.getIn().getType() == element.getType())
      element = wide.getIn();
  if (auto extract = element.getDefiningOp<tensor::ExtractOp>())
    return {extract.getTensor(), llvm::map_to_vector(extract.getIndices(), overLoops)};
  auto argument = dyn_cast<BlockArgument>(element);
  if (!argument || argument.getOwner() != op.getBlock() || int64_t(argument.getArgNumber()) >= op.getNumDpsInputs())
    return {};
  OpOperand &operand = op->getOpOperand(argument.getArgNumber());
  return {operand.get(), SmallVector<AffineExpr>(operandMap(operand).getResults())};
}

/// Returns the tensor of which the op's only result is a slice, and the slice.
static std::optional<std::pair<Value, Window>> findWindow(linalg::GenericOp op) {
  if (op.getNumDpsInits() != 1 || op.getNumReductionLoops() || !op.getIndexingMapsArray().back().isIdentity())
    return std::nullopt;
  const Copied copied = findCopied(op);
  const SmallVector<AffineExpr> extents = loopExtents(op);
  if (!copied.whole || copied.at.size() != extents.size())
    return std::nullopt;
  Window window{op->getResult(0), {}};
  for (auto [loop, index] : llvm::enumerate(copied.at)) {
    if (!index)
      return std::nullopt;
    const bool isOne = extents[loop] == getAffineConstantExpr(1, op->getContext());
    AffineExpr from =
        isOne && isa<AffineConstantExpr>(index) ? index : index - getAffineDimExpr(loop, op->getContext());
    auto first = dyn_cast<AffineConstantExpr>(simplifyAffineExpr(from, extents.size(), 0));
    if (!first || first.getValue() < 0)
      return std::nullopt;
    window.first.push_back(first.getValue());
  }
  return std::pair(copied.whole, std::move(window));
}

/// A result that is a slice of another one is stored by the stage of that one, unless the other one may share the
/// memory of an argument and would have to go through scratch memory.
void Placement::findWindows() {
  std::vector<KernelStage> kept;
  auto mayBeInPlace = [&](Value whole) {
    return llvm::any_of(KernelFunction(kernel).tensors(), [&](BlockArgument argument) {
      return argument.getType() == whole.getType() && isInPlace(places.lookup(argument));
    });
  };
  for (KernelStage &stage : stages) {
    const Parameter place = stage.stores.front().place;
    std::optional<std::pair<Value, Window>> found =
        place.kind == Parameter::Tensor ? findWindow(stage.op) : std::nullopt;
    auto storesWhole = [&](const KernelStage &other) {
      return found && !mayBeInPlace(found->first) && llvm::any_of(other.stores, [&](const Store &store) {
               return store.value == found->first && !store.window && store.place.kind == Parameter::Tensor;
             });
    };
    if (auto source = llvm::find_if(kept, storesWhole); source != kept.end())
      source->stores.push_back({found->first, place, found->second});
    else
      kept.push_back(std::move(stage));
  }
  stages = std::move(kept);
}

/// Copies values that are returned but not stored in the result: arguments, constants, values that are returned twice.
void Placement::copyResults() {
  for (auto [number, value] : llvm::enumerate(KernelFunction(kernel).results())) {
    Parameter result{Parameter::Tensor, int64_t(arguments + number)};
    if (find(value) != result)
      stages.push_back({{}, {{value, result}}});
  }
}

//===- In-place results --------------------------------------------------===//

/// `map`: from the stage's loops to the tensor's elements; null: any element.
void Placement::addReads(Value tensor, AffineMap map, Reads &reads) const {
  if (places.contains(tensor)) {
    reads.push_back({tensor, map});
    return;
  }
  auto op = tensor.getDefiningOp<linalg::GenericOp>();
  if (!op)
    return;
  SmallVector<AffineExpr> loops(op.getNumLoops());
  AffineMap written = op.getMatchingIndexingMap(op.getDpsInitOperand(cast<OpResult>(tensor).getResultNumber()));
  if (map)
    for (unsigned i = 0; i < written.getNumResults(); ++i)
      loops[written.getDimPosition(i)] = map.getResult(i);
  addReads(op, loops, map ? map.getNumDims() : 0, reads);
}

/// `loops`: those of the op, over the stage's; null: any index.
void Placement::addReads(linalg::GenericOp op, ArrayRef<AffineExpr> loops, unsigned dims, Reads &reads) const {
  for (OpOperand &operand : op->getOpOperands()) {
    if (op.getMatchingBlockArgument(&operand).use_empty())
      continue;
    AffineMap map = operandMap(operand);
    bool isKnown = true;
    for (auto [number, loop] : llvm::enumerate(loops))
      isKnown &= loop || !map.isFunctionOfDim(number);
    SmallVector<AffineExpr> known(loops);
    for (AffineExpr &loop : known)
      loop = loop ? loop : getAffineConstantExpr(0, op->getContext());
    addReads(operand.get(), isKnown ? simplifyAffineMap(map.replaceDimsAndSymbols(known, {}, dims, 0)) : AffineMap(),
             reads);
  }
  for (auto extract : op.getBlock()->getOps<tensor::ExtractOp>())
    addReads(extract.getTensor(), AffineMap(), reads);
}

Placement::Reads Placement::readsOf(const KernelStage &stage) const {
  Reads reads;
  if (!stage.op) {
    Value value = stage.stores.front().value;
    const unsigned rank = cast<RankedTensorType>(value.getType()).getRank();
    addReads(value, AffineMap::getMultiDimIdentityMap(rank, value.getContext()), reads);
    return reads;
  }
  linalg::GenericOp op = stage.op;
  SmallVector<AffineExpr> loops;
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    loops.push_back(kind == utils::IteratorType::parallel ? getAffineDimExpr(loop, op->getContext()) : AffineExpr());
  addReads(op, loops, op.getNumLoops(), reads);
  return reads;
}

/// Whether a store of the op's result may overwrite an element that is read later. `reads`: those of the op's stage
/// and of all later stages.
bool Placement::isOverwritten(linalg::GenericOp op, Value result, ArrayRef<Reads> reads) const {
  AffineMap written = op.getMatchingIndexingMap(op.getDpsInitOperand(cast<OpResult>(result).getResultNumber()));
  for (auto [number, ofStep] : llvm::enumerate(reads))
    for (const Read &read : ofStep)
      if (isInPlace(places.lookup(read.tensor)) && read.tensor.getType() == result.getType() &&
          (number > 0 || read.map != written))
        return true;
  return false;
}

void Placement::keepArguments() {
  SmallVector<Reads> reads;
  for (const KernelStage &stage : stages)
    reads.push_back(readsOf(stage));
  SmallVector<KernelStage> copies; // last, so that none of them depends on another one
  for (auto [number, stage] : llvm::enumerate(stages))
    for (Store &store : stage.stores) {
      const bool isResult = stage.op && store.place.kind == Parameter::Tensor;
      if (!isResult || !isOverwritten(stage.op, store.value, ArrayRef(reads).drop_front(number)))
        continue;
      copies.push_back({{}, {store}});
      places[store.value] = store.place = {Parameter::Scratch, scratchValues++};
    }
  llvm::append_range(stages, copies);
}

//===- Scratch memory ----------------------------------------------------===//

namespace {

/// Memory that is live from the launch that writes it to the last one that reads it.
struct ScratchBlock {
  int64_t offset, bytes;
  size_t last;
};

/// Returns the lowest offset at which this many bytes are free.
int64_t findRoom(ArrayRef<ScratchBlock> live, int64_t bytes) {
  int64_t offset = 0;
  for (bool isFree = false; !isFree;) {
    isFree = true;
    for (const ScratchBlock &block : live)
      if (block.offset < offset + bytes && offset < block.offset + block.bytes) {
        offset = block.offset + block.bytes;
        isFree = false;
      }
  }
  return offset;
}

} // namespace

void Placement::assignScratch(ArrayRef<size_t> launches) {
  scratchBytes = 0;
  DenseMap<Value, size_t> last;
  for (auto [launch, stage] : llvm::zip_equal(launches, stages))
    for (const Read &read : readsOf(stage))
      last[read.tensor] = launch;
  SmallVector<ScratchBlock> live;
  for (auto [launch, stage] : llvm::zip_equal(launches, stages)) {
    llvm::erase_if(live, [launch = launch](const ScratchBlock &block) { return block.last < launch; });
    for (Store &store : stage.stores) {
      if (store.place.kind != Parameter::Scratch)
        continue;
      const int64_t elements = mostElements(store.value.getType(), kernel);
      const int64_t bytes =
          llvm::alignTo(mlir::kiln::storedBytes(getElementTypeOrSelf(store.value), elements), alignment);
      live.push_back({findRoom(live, bytes), bytes, last.lookup(store.value)});
      places[store.value].number = store.place.number = live.back().offset;
      scratchBytes = std::max(scratchBytes, live.back().offset + bytes);
    }
  }
}

} // namespace kiln::cuda
