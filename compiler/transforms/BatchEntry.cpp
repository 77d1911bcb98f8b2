// SPDX-License-Identifier: Apache-2.0
//
// A value of the entry is shared (a weight or a constant, the same for all sequences), whole (it has the rows of all
// sequences), or per-sequence. The ops are visited in order:
//   1. An op that only reads shared values stays as it is.
//   2. An op that works on rows is cloned for whole values.
//   3. All other ops are deferred until the remaining ops are all of kind 2 and depend on the deferred ones. Then the
//      deferred ops become a kiln.each_sequence, whose slices are of the whole values that they read.
// A value without a whole form, whose other extents differ between sequences, is recomputed in each later
// kiln.each_sequence that reads it; so a state is stored after its last reader. The same holds for rows that a state
// keeps.
// An entry that cannot be cut in this way, for example because later ops read the results of a loop that have no whole
// form, runs sequence by sequence from beginning to end.
#include "compiler/transforms/BatchEntry.h"

#include "compiler/dialect/Check.h"
#include "compiler/dialect/Extents.h"
#include "compiler/dialect/ReadValues.h"
#include "compiler/dialect/lowering/RowCollapser.h"
#include "compiler/transforms/Passes.h"
#include "compiler/transforms/RowsInPlace.h"
#include "kiln/batch.h"
#include "kiln/rules.h"
#include "mlir/IR/IRMapping.h"

namespace kiln {

using namespace mlir;
namespace kd = mlir::kiln;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

class EntryBatcher {
public:
  /// `isCut`: whether ops that work on rows run once for all sequences.
  EntryBatcher(OpBuilder &builder, const kd::BatchSymbols &symbols, bool isCut)
      : builder(builder), symbols(symbols), isCut(isCut) {}

  /// Maps a value to its counterpart in the function for several sequences. `isWhole`: it has the rows of all
  /// sequences.
  void map(Value from, Value to, bool isWhole) {
    mapping.map(from, to);
    if (isWhole)
      wholes.insert(from);
  }
  LogicalResult batch(Block &block);
  /// Returns the value with the rows of all sequences; null after a diagnostic.
  Value toWhole(Value value);

private:
  bool isShared(Value value) const { return mapping.contains(value) && !wholes.contains(value); }
  bool isShared(Operation *op) const;
  bool worksOnRows(Operation *op) const;
  bool mustFollow(kd::StoreOp store, const llvm::SetVector<Operation *> &blocked) const;
  void findKept(Block &block);
  bool isWritten(Attribute state) const { return written.contains(state); }
  void batchRows(Operation *op);
  bool mayRepeat(kd::RepeatOp repeat) const;
  LogicalResult batchRepeat(kd::RepeatOp repeat);
  /// Emits the deferred ops as a kiln.each_sequence.
  LogicalResult close();
  kd::EachSequenceOp createLoop(Location loc, ArrayRef<Value> read, ArrayRef<Value> given);
  void findWholes(Value value, const llvm::SmallPtrSetImpl<Operation *> &inside, llvm::SetVector<Value> &found) const;
  FailureOr<Value> compute(Value value, IRMapping &inside);

  OpBuilder &builder;
  const kd::BatchSymbols &symbols;
  const bool isCut;
  IRMapping mapping;
  DenseSet<Value> wholes;
  SmallVector<Operation *> waiting;
  DenseSet<Operation *> kept;  // ops that compute the rows that states of sequences keep
  DenseSet<Attribute> written; // states that an earlier kiln.each_sequence has stored
};

/// Whether the op is the same for all sequences: it reads no per-sequence value and no state, and has none of their
/// extents.
bool EntryBatcher::isShared(Operation *op) const {
  if (!llvm::all_of(kd::readBy(op), [&](Value value) { return isShared(value); }))
    return false;
  return !op->walk([](Operation *inner) {
              const bool isOwn = isa<kd::StateOp, kd::AppendOp, kd::StoreOp>(inner) ||
                                 llvm::any_of(inner->getResultTypes(),
                                              [](Type type) { return !cast<RankedTensorType>(type).hasStaticShape(); });
              return isOwn ? WalkResult::interrupt() : WalkResult::advance();
            }).wasInterrupted();
}

/// Whether the op treats the rows of its first axis alike and independently.
bool EntryBatcher::worksOnRows(Operation *op) const {
  if (op->getNumRegions() > 0 || op->getNumResults() == 0 ||
      !llvm::all_of(op->getResults(), [&](Value result) { return symbols.getWhole(typeOf(result)) != nullptr; }))
    return false;
  const AffineExpr rows = kd::getExtents(typeOf(op->getResult(0))).front();
  if (auto view = dyn_cast<kd::ReshapeOp>(op))
    return symbols.getWhole(typeOf(view.getX())) && kd::getExtents(typeOf(view.getX())).front() == rows;
  if (auto slice = dyn_cast<kd::SliceOp>(op); slice && slice.getX().getType() == slice.getType())
    return true;
  if (isa<kd::AllReduceOp>(op))
    return wholes.contains(op->getOperand(0));
  auto inKernel = dyn_cast<kd::KernelOpInterface>(op);
  kd::RowCollapser collapser(rows);
  if (!inKernel || isa<kd::ConstantOp>(op) ||
      !llvm::all_of(op->getResults(), [&](Value result) { return collapser.markFull(result); }) ||
      !inKernel.collapseRows(collapser))
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    return isShared(operand) ? !collapser.full.contains(operand)
                             : collapser.full.contains(operand) && symbols.getWhole(typeOf(operand));
  });
}

Value EntryBatcher::toWhole(Value value) {
  if (wholes.contains(value))
    return mapping.lookup(value);
  if (!symbols.getWhole(typeOf(value))) {
    emitError(value.getLoc())
        << "batched entry: value cannot be batched; expected a type that all sequences' rows can have, got "
        << value.getType();
    return {};
  }
  // A shared value is the same for each sequence.
  kd::EachSequenceOp loop = createLoop(value.getLoc(), {}, value);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&loop.getBody().front());
  kd::YieldOp::create(builder, value.getLoc(), mapping.lookup(value));
  return loop.getResult(0);
}

/// Collects the whole values that `value`, which ops of a loop read, is or is recomputed from in the loop.
void EntryBatcher::findWholes(Value value, const llvm::SmallPtrSetImpl<Operation *> &inside,
                              llvm::SetVector<Value> &found) const {
  Operation *source = value.getDefiningOp();
  if (wholes.contains(value))
    found.insert(value);
  else if (source && !isShared(value) && !inside.contains(source) && !isa<kd::AppendOp>(source))
    for (Value operand : kd::readBy(source))
      findWholes(operand, inside, found);
}

/// Returns a value that a sequence reads in `inside`: a shared value as it is, any other value computed there.
FailureOr<Value> EntryBatcher::compute(Value value, IRMapping &inside) {
  if (Value known = inside.lookupOrNull(value))
    return known;
  if (isShared(value))
    return mapping.lookup(value);
  Operation *source = value.getDefiningOp();
  if (auto append = dyn_cast_or_null<kd::AppendOp>(source)) { // the append is done, so the rows are in the state
    auto state = kd::StateOp::create(builder, append.getLoc(), append.getType(), append.getNameAttr(),
                                     append.getCopiesAttr(), append.getRowsAttr());
    inside.map(value, state.getResult());
    return state.getResult();
  }
  const bool isReplaced = isa_and_nonnull<kd::StateOp>(source) && isWritten(source->getAttr("name"));
  if (!source || source->getNumRegions() > 0 || !isPure(source) || isReplaced)
    return emitError(value.getLoc())
           << "batched entry: value of type " << value.getType()
           << " is used too late; expected a use before its rows meet those of other sequences";
  for (Value operand : source->getOperands()) {
    FailureOr<Value> computed = compute(operand, inside);
    if (failed(computed))
      return failure();
    inside.map(operand, *computed);
  }
  builder.clone(*source, inside);
  return inside.lookup(value);
}

/// Creates a loop with an empty body that reads whole values and yields others.
kd::EachSequenceOp EntryBatcher::createLoop(Location loc, ArrayRef<Value> read, ArrayRef<Value> given) {
  SmallVector<Value> operands = llvm::map_to_vector(read, [&](Value value) { return mapping.lookup(value); });
  SmallVector<Type> slices = llvm::map_to_vector(read, [](Value value) { return value.getType(); });
  SmallVector<Type> results =
      llvm::map_to_vector(given, [&](Value value) -> Type { return symbols.getWhole(typeOf(value)); });
  return kd::EachSequenceOp::create(builder, loc, symbols, operands, slices, results);
}

LogicalResult EntryBatcher::close() {
  if (waiting.empty())
    return success();
  const SmallVector<Operation *> ops = std::exchange(waiting, {});
  const llvm::SmallPtrSet<Operation *, 16> inside(ops.begin(), ops.end());
  Block *block = ops.front()->getBlock();
  llvm::SetVector<Value> read;
  SmallVector<Value> given;
  for (Operation *op : ops) {
    for (Value value : kd::readBy(op))
      findWholes(value, inside, read);
    for (Value result : op->getResults())
      if (symbols.getWhole(typeOf(result)) && !kept.contains(op) &&
          llvm::any_of(result.getUsers(),
                       [&](Operation *user) { return !inside.contains(block->findAncestorOpInBlock(*user)); }))
        given.push_back(result);
  }
  const Location loc = ops.front()->getLoc();
  kd::EachSequenceOp loop = createLoop(loc, read.getArrayRef(), given);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&loop.getBody().front());
  IRMapping here;
  for (auto [value, slice] : llvm::zip_equal(read, loop.getBody().getArguments()))
    here.map(value, slice);
  for (Operation *op : ops) {
    for (Value value : kd::readBy(op)) {
      FailureOr<Value> computed = compute(value, here);
      if (failed(computed))
        return failure();
      here.map(value, *computed);
    }
    builder.clone(*op, here);
    op->walk([&](kd::StoreOp store) { written.insert(store.getNameAttr()); });
  }
  kd::YieldOp::create(builder, loc, llvm::map_to_vector(given, [&](Value value) { return here.lookup(value); }));
  for (auto [value, whole] : llvm::zip_equal(given, loop.getResults()))
    map(value, whole, true);
  return success();
}

void EntryBatcher::batchRows(Operation *op) {
  Operation *clone = builder.clone(*op, mapping);
  for (auto [before, after] : llvm::zip_equal(op->getResults(), clone->getResults())) {
    after.setType(symbols.getWhole(typeOf(before)));
    map(before, after, true);
  }
}

/// Whether the loop over layers can work on whole values.
bool EntryBatcher::mayRepeat(kd::RepeatOp repeat) const {
  return kd::LoopInterface(repeat).getStacked().empty() &&
         llvm::all_of(repeat.getInits(), [&](Value init) { return symbols.getWhole(typeOf(init)) != nullptr; });
}

LogicalResult EntryBatcher::batchRepeat(kd::RepeatOp repeat) {
  SmallVector<Value> inits;
  for (Value init : repeat.getInits()) {
    Value whole = toWhole(init);
    if (!whole)
      return failure();
    inits.push_back(whole);
  }
  auto loop = kd::RepeatOp::create(builder, repeat.getLoc(), repeat.getCount(), inits);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&loop.getBody().front());
  for (auto [before, after] : llvm::zip_equal(repeat.getBody().getArguments(), loop.getBody().getArguments()))
    map(before, after, true);
  if (failed(batch(repeat.getBody().front())))
    return failure();
  SmallVector<Value> yielded;
  for (Value value : repeat.getYield()->getOperands()) {
    Value whole = toWhole(value);
    if (!whole)
      return failure();
    yielded.push_back(whole);
  }
  kd::YieldOp::create(builder, repeat.getLoc(), yielded);
  for (auto [before, after] : llvm::zip_equal(repeat.getResults(), loop.getResults()))
    map(before, after, true);
  return success();
}

/// Whether an op that comes later reads the state's value from before the call.
bool EntryBatcher::mustFollow(kd::StoreOp store, const llvm::SetVector<Operation *> &blocked) const {
  llvm::SetVector<Operation *> reached = blocked;
  for (size_t i = 0; i < reached.size(); ++i) {
    if (auto state = dyn_cast<kd::StateOp>(reached[i]); state && state.getNameAttr() == store.getNameAttr())
      return true;
    for (Value value : kd::readBy(reached[i]))
      if (Operation *source = value.getDefiningOp(); source && !mapping.contains(value))
        reached.insert(source);
  }
  return false;
}

/// Finds the ops whose rows stay in place (compiler/transforms/SlideStates.cpp) if each sequence stores its own: the
/// last rows of streams.
void EntryBatcher::findKept(Block &block) {
  for (auto store : block.getOps<kd::StoreOp>()) {
    SmallVector<Operation *> ops = kd::getKeptRows(store);
    const bool isOnlyStored = llvm::all_of(ops, [&](Operation *op) {
      return llvm::all_of(op->getUsers(),
                          [&](Operation *user) { return user == store || llvm::is_contained(ops, user); });
    });
    if (isOnlyStored)
      kept.insert_range(ops);
  }
}

LogicalResult EntryBatcher::batch(Block &block) {
  findKept(block);
  llvm::SetVector<Operation *> left;
  for (Operation &op : block.without_terminator())
    left.insert(&op);
  while (!left.empty()) {
    llvm::SetVector<Operation *> blocked;
    llvm::SmallPtrSet<Operation *, 16> isWaiting;
    for (Operation *op : left) {
      auto repeat = dyn_cast<kd::RepeatOp>(op);
      auto store = dyn_cast<kd::StoreOp>(op);
      if (isShared(op)) {
        builder.clone(*op, mapping);
        continue;
      }
      const bool isOfAll = isCut && (repeat ? mayRepeat(repeat) : !kept.contains(op) && worksOnRows(op));
      auto readsOf = [&](const auto &ops) {
        return llvm::any_of(kd::readBy(op), [&](Value value) {
          Operation *source = value.getDefiningOp();
          return source && ops.contains(source);
        });
      };
      if (readsOf(blocked) || (isOfAll && readsOf(isWaiting)) || (store && mustFollow(store, blocked))) {
        blocked.insert(op);
      } else if (!isOfAll) {
        waiting.push_back(op);
        isWaiting.insert(op);
      } else if (repeat) {
        SmallVector<Operation *> outside = std::exchange(waiting, {});
        if (failed(batchRepeat(repeat)))
          return failure();
        waiting = std::move(outside);
      } else {
        batchRows(op);
      }
    }
    if (failed(close()))
      return failure();
    left = std::move(blocked);
  }
  return success();
}

} // namespace

LogicalResult batchEntry(func::FuncOp entry, const kd::BatchSymbols &symbols) {
  OpBuilder builder(entry->getContext());
  builder.setInsertionPointAfter(entry);
  auto wholeTypes = [&](TypeRange types) {
    return llvm::map_to_vector(types, [&](Type type) -> Type {
      auto tensor = dyn_cast<RankedTensorType>(type);
      return tensor ? symbols.getWhole(tensor) : type;
    });
  };
  auto inputs = wholeTypes(entry.getArgumentTypes()), results = wholeTypes(entry.getResultTypes());
  if (llvm::is_contained(inputs, Type()) || llvm::is_contained(results, Type()))
    return entry.emitError()
           << "batched entry: dynamic dimension after the first; expected fixed ones in inputs and results, got "
           << entry.getFunctionType();
  auto function = func::FuncOp::create(builder, entry.getLoc(), batch_name(entry.getName().str()),
                                       builder.getFunctionType(inputs, results));
  function->setAttr(kd::entryAttrName, builder.getUnitAttr());
  function->setAttr(kd::batchAttrName, builder.getUnitAttr());
  if (ArrayAttr attributes = entry.getAllArgAttrs())
    function.setAllArgAttrs(attributes);
  if (ArrayAttr attributes = entry.getAllResultAttrs())
    function.setAllResultAttrs(attributes);

  auto fill = [&](bool isCut) -> LogicalResult {
    EntryBatcher batcher(builder, symbols, isCut);
    Block *body = function.addEntryBlock();
    builder.setInsertionPointToEnd(body);
    for (auto [before, after] : llvm::zip_equal(entry.getArguments(), body->getArguments()))
      batcher.map(before, after, isa<RankedTensorType>(before.getType()));
    if (failed(batcher.batch(entry.getBody().front())))
      return failure();
    SmallVector<Value> returned;
    for (Value value : entry.getBody().front().getTerminator()->getOperands()) {
      Value whole = batcher.toWhole(value);
      if (!whole)
        return failure();
      returned.push_back(whole);
    }
    func::ReturnOp::create(builder, entry.getLoc(), returned);
    return success();
  };
  {
    ScopedDiagnosticHandler silent(entry->getContext(), [](Diagnostic &) { return success(); });
    if (succeeded(fill(/*isCut=*/true)))
      return success();
  }
  for (Block &block : function.getBody())
    block.dropAllReferences();
  while (!function.getBody().empty())
    function.getBody().front().erase();
  return fill(/*isCut=*/false);
}

} // namespace kiln

namespace mlir::kiln {

#define GEN_PASS_DEF_BATCHENTRIES
#include "compiler/transforms/Passes.h.inc"

namespace {

struct BatchEntries : impl::BatchEntriesBase<BatchEntries> {
  using BatchEntriesBase::BatchEntriesBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const std::optional<BatchSymbols> symbols = BatchSymbols::of(module);
    for (func::FuncOp entry : llvm::to_vector(module.getOps<func::FuncOp>())) {
      if (!entry->hasAttr(batchedAttrName))
        continue;
      if (failed(batch(entry, symbols)))
        return signalPassFailure();
      entry->removeAttr(batchedAttrName);
    }
    module->removeAttr(batchSymbolsAttrName);
  }

private:
  static LogicalResult batch(func::FuncOp entry, const std::optional<BatchSymbols> &symbols) {
    auto module = entry->getParentOfType<ModuleOp>();
    if (!symbols)
      return entry.emitError() << batchedAttrName << ": no symbols; expected " << batchSymbolsAttrName
                               << " on the module";
    const std::string name = ::kiln::batch_name(entry.getName().str());
    if (module.lookupSymbol(name))
      return mlir::emitError(module.getLoc()) << withValues(::kiln::rules::model_c5, name + " twice");
    return ::kiln::batchEntry(entry, *symbols);
  }
};

} // namespace
} // namespace mlir::kiln
