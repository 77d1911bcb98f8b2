// SPDX-License-Identifier: Apache-2.0
//
// What follows from weights only and costs something, as the scales of a batch norm or normalised weights do, is
// computed when weights are bound: it becomes a derived weight, which a function of the module assigns.
#include "compiler/transforms/Passes.h"

#include "compiler/dialect/KernelOp.h"
#include "compiler/dialect/KilnDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"
#include <map>

namespace mlir::kiln {

#define GEN_PASS_DEF_DERIVEWEIGHTS
#include "compiler/transforms/Passes.h.inc"

namespace {

/// A weight as the file has it, which stays what it was bound to and is stored as a kernel reads any tensor.
bool isPlainWeight(ParameterOp parameter) {
  auto type = cast<RankedTensorType>(parameter.getType());
  return !parameter.getVariable() && !parameter.getStorage() && !parameter.getDerived() &&
         parameter.getSources().size() == 1 && !type.getEncoding() && isa<FloatType>(type.getElementType());
}

/// The loops over layers around an op, the outermost one first.
SmallVector<LoopInterface> layersAround(Operation *op) {
  SmallVector<LoopInterface> loops;
  for (Operation *parent = op->getParentOp(); parent; parent = parent->getParentOp())
    if (auto loop = dyn_cast<LoopInterface>(parent); loop && loop.isOverLayers())
      loops.push_back(loop);
  std::reverse(loops.begin(), loops.end());
  return loops;
}

/// What is known of a value that follows from weights and constants only.
struct Source {
  int64_t number = 0;      // equal for values that are computed alike
  int64_t elements = 0;    // of the weights that it follows from
  bool isCostly = false;   // there is more to it than a kernel computes where it reads it
  ParameterOp innermost{}; // a weight in most loops over layers; null: it follows from constants
};

/// Finds out where values come from.
class Sources {
public:
  /// None: not from weights and constants only.
  std::optional<Source> find(Value value) {
    if (auto known = found.find(value); known != found.end())
      return known->second;
    std::optional<Source> source = compute(value);
    found[value] = source;
    return source;
  }

private:
  std::optional<Source> compute(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || op->getNumResults() != 1 || op->getNumRegions() > 0 || !isMemoryEffectFree(op) ||
        !cast<RankedTensorType>(value.getType()).hasStaticShape())
      return std::nullopt;
    constexpr int64_t enough = int64_t{1} << 40;
    Source source;
    if (auto weight = dyn_cast<ParameterOp>(op)) {
      if (!isPlainWeight(weight))
        return std::nullopt;
      source.elements = cast<RankedTensorType>(weight.getType()).getNumElements();
      source.innermost = weight;
    } else if (auto inKernel = dyn_cast<KernelOpInterface>(op); inKernel && op->getNumOperands() > 0) {
      source.isCostly = !inKernel.isLazy() || inKernel.getElementCost() == ElementCost::Costly;
    } else if (!isa<ConstantOp>(op)) {
      return std::nullopt;
    }
    std::vector<const void *> key{op->getName().getAsOpaquePointer(), op->getAttrDictionary().getAsOpaquePointer(),
                                  value.getType().getAsOpaquePointer()};
    for (Value operand : op->getOperands()) {
      const std::optional<Source> from = find(operand);
      if (!from)
        return std::nullopt;
      key.push_back(reinterpret_cast<const void *>(from->number));
      source.elements = std::min(enough, source.elements + from->elements); // one is read by many
      source.isCostly |= from->isCostly;
      if (from->innermost &&
          (!source.innermost || layersAround(source.innermost).size() < layersAround(from->innermost).size()))
        source.innermost = from->innermost;
    }
    source.number = numbers.try_emplace(std::move(key), static_cast<int64_t>(numbers.size())).first->second;
    return source;
  }

  DenseMap<Value, std::optional<Source>> found;
  std::map<std::vector<const void *>, int64_t> numbers;
};

/// The function that assigns derived weights.
class Deriver {
public:
  explicit Deriver(ModuleOp module) : module(module), builder(module.getContext()) {}

  /// A weight that has the value, computed as this one is; the same for all that are computed alike.
  ParameterOp derive(Value value, const Source &source) {
    auto [known, isNew] = names.try_emplace(source.number, "=" + std::to_string(names.size())); // no name of a file
    if (isNew) {
      for (size_t i = layersAround(source.innermost).size(); i > 0; --i)
        known->second += " {}";
      assign(value, source, known->second);
    }
    OpBuilder at(module.getContext());
    at.setInsertionPointAfter(source.innermost);
    return create(at, value, source, known->second);
  }

  /// After the last one.
  void finish() {
    if (!function)
      return;
    std::string text;
    llvm::raw_string_ostream(text) << function;
    function->setAttr(derivesAttrName, builder.getStringAttr(llvm::utohexstr(llvm::xxh3_64bits(text))));
  }

private:
  static ParameterOp create(OpBuilder &at, Value value, const Source &source, StringRef name) {
    return ParameterOp::create(at, value.getLoc(), value.getType(), at.getStrArrayAttr({name}),
                               ParameterOp(source.innermost).getCopies(), DenseI64ArrayAttr(), 0, /*variable=*/false,
                               StorageAttr(),
                               /*derived=*/true);
  }

  /// Computes the value in loops like those around the weights that it follows from, and assigns it.
  void assign(Value value, const Source &source, StringRef name) {
    SmallVector<Operation *> ends{endOfFunction()}; // what the ops of each loop go before
    for (LoopInterface layers : layersAround(source.innermost)) {
      builder.setInsertionPoint(ends.back());
      auto repeat = RepeatOp::create(
          builder, value.getLoc(), cast<AffineConstantExpr>(layers.getTripCount()).getValue(), ValueRange(),
          TypeRange(), [](OpBuilder &inside, Location loc, ValueRange) { YieldOp::create(inside, loc, ValueRange()); });
      ends.back() = repeat;
      ends.push_back(repeat.getBody().front().getTerminator());
    }
    IRMapping copies;
    (void)copy(value.getDefiningOp(), ends, copies);
    builder.setInsertionPoint(ends.back());
    AssignOp::create(builder, value.getLoc(), copies.lookup(value), create(builder, value, source, name));
  }

  Operation *endOfFunction() {
    if (!function) {
      builder.setInsertionPointToEnd(module.getBody());
      function = func::FuncOp::create(builder, module.getLoc(), derivesFunctionName, builder.getFunctionType({}, {}));
      function->setAttr(entryAttrName, builder.getUnitAttr());
      builder.setInsertionPointToStart(function.addEntryBlock());
      func::ReturnOp::create(builder, module.getLoc());
    }
    return function.getBody().front().getTerminator();
  }

  /// Copies an op and what it is computed of, each to the innermost loop that it needs. How many loops that is.
  size_t copy(Operation *op, ArrayRef<Operation *> ends, IRMapping &copies) {
    if (copies.contains(op))
      return levels.lookup(copies.lookup(op));
    size_t level = isa<ParameterOp>(op) ? layersAround(op).size() : 0;
    for (Value operand : op->getOperands())
      level = std::max(level, copy(operand.getDefiningOp(), ends, copies));
    builder.setInsertionPoint(ends[level]);
    levels[builder.clone(*op, copies)] = level;
    return level;
  }

  ModuleOp module;
  OpBuilder builder;
  func::FuncOp function;
  std::map<int64_t, std::string> names; // by the values' numbers
  DenseMap<Operation *, size_t> levels; // of copies
};

/// Whether it pays to keep the value: it costs something to compute, and is not much larger than what it follows from.
bool isWorthKeeping(Operation *op, const Source &source) {
  constexpr int64_t fewElements = 1 << 16;
  auto inKernel = dyn_cast<KernelOpInterface>(op);
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  const bool isFree =
      !inKernel || isa<ExpandOp>(op) || (inKernel.isLazy() && inKernel.getElementCost() == ElementCost::Free);
  return source.innermost && source.isCostly && !isFree && !type.getEncoding() &&
         isa<FloatType>(type.getElementType()) && type.getNumElements() <= std::max(fewElements, 4 * source.elements);
}

struct DeriveWeights : impl::DeriveWeightsBase<DeriveWeights> {
  using DeriveWeightsBase::DeriveWeightsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const bool isCut = module->hasAttr(ranksAttrName) || module->hasAttr(stagesAttrName);
    const bool changesWeights = module
                                    .walk([](ParameterOp parameter) {
                                      return parameter.getVariable() ? WalkResult::interrupt() : WalkResult::advance();
                                    })
                                    .wasInterrupted();
    if (isCut || changesWeights)
      return;
    SmallVector<Operation *> ops; // those that read last
    module.walk<WalkOrder::PostOrder>([&](Operation *op) { ops.push_back(op); });
    std::reverse(ops.begin(), ops.end());
    Sources sources;
    SmallVector<std::pair<Operation *, Source>> chosen;
    llvm::SmallPtrSet<Operation *, 16> covered; // they are chosen, or what reads them is covered
    for (Operation *op : ops) {
      if (op->getNumResults() != 1 || !isa<RankedTensorType>(op->getResult(0).getType()))
        continue;
      const std::optional<Source> source = sources.find(op->getResult(0));
      if (!source)
        continue;
      if (llvm::all_of(op->getUsers(), [&](Operation *user) { return covered.contains(user); })) {
        covered.insert(op);
      } else if (isWorthKeeping(op, *source)) {
        covered.insert(op);
        chosen.emplace_back(op, *source);
      }
    }
    Deriver deriver(module);
    for (auto &[op, source] : chosen)
      op->replaceAllUsesWith(deriver.derive(op->getResult(0), source));
    deriver.finish();
    for (Operation *op : ops)
      if (covered.contains(op))
        op->erase();
  }
};

} // namespace
} // namespace mlir::kiln
