// SPDX-License-Identifier: Apache-2.0
//
// Computes values that depend on weights only, such as the scales of a batch norm or normalised weights, when weights
// are bound, unless they are free: each becomes a derived weight, which a function of the module assigns.
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

/// Whether the weight is stored as in the file, neither variable, quantised, derived, joined nor tiled, so that a
/// kernel reads it like any tensor.
bool isPlainWeight(ParameterOp parameter) {
  auto type = cast<RankedTensorType>(parameter.getType());
  return !parameter.getVariable() && !parameter.getStorage() && !parameter.getDerived() &&
         parameter.getSources().size() == 1 && !type.getEncoding() && isa<FloatType>(type.getElementType());
}

/// Returns the loops over layers around an op, outermost first.
SmallVector<LoopInterface> layersAround(Operation *op) {
  SmallVector<LoopInterface> loops;
  for (Operation *parent = op->getParentOp(); parent; parent = parent->getParentOp())
    if (auto loop = dyn_cast<LoopInterface>(parent); loop && loop.isOverLayers())
      loops.push_back(loop);
  std::reverse(loops.begin(), loops.end());
  return loops;
}

/// Properties of a value that depends on weights and constants only.
struct Source {
  int64_t number = 0;      // equal for values that are computed alike
  int64_t elements = 0;    // total elements of the weights that it depends on
  bool isCostly = false;   // whether computing it costs more than a kernel may repeat at each read
  ParameterOp innermost{}; // the weight in the most deeply nested loop over layers; null if it depends on constants
                           // only
};

/// Determines which values depend on weights and constants only.
class Sources {
public:
  /// Returns nullopt if the value depends on anything else.
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
      source.elements = std::min(enough, source.elements + from->elements); // saturates: an operand may be counted many
                                                                            // times
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

/// Builds the function that assigns derived weights.
class Deriver {
public:
  explicit Deriver(ModuleOp module) : module(module), builder(module.getContext()) {}

  /// Returns a derived weight for the value. Values that are computed alike share one.
  ParameterOp derive(Value value, const Source &source) {
    auto [known, isNew] = names.try_emplace(source.number, "=" + std::to_string(names.size())); // no file has a tensor
                                                                                                // of this name
    if (isNew) {
      for (size_t i = layersAround(source.innermost).size(); i > 0; --i)
        known->second += " {}";
      assign(value, source, known->second);
    }
    OpBuilder at(module.getContext());
    at.setInsertionPointAfter(source.innermost);
    return create(at, value, source, known->second);
  }

  /// Records a hash of the function. Called after the last derive().
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

  /// Computes the value in a copy of the loops around the weights that it depends on, and assigns it.
  void assign(Value value, const Source &source, StringRef name) {
    SmallVector<Operation *> ends{endOfFunction()}; // insertion point of each loop level
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

  /// Copies an op and its producers, each to the outermost loop level possible. Returns the op's loop level.
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
  DenseMap<Operation *, size_t> levels; // of the copies
};

/// Whether it pays to store the value: computing it is not free, and it is not much larger than the weights that it
/// depends on.
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
    SmallVector<Operation *> ops; // users before producers
    module.walk<WalkOrder::PostOrder>([&](Operation *op) { ops.push_back(op); });
    std::reverse(ops.begin(), ops.end());
    Sources sources;
    SmallVector<std::pair<Operation *, Source>> chosen;
    llvm::SmallPtrSet<Operation *, 16> covered; // chosen, or all users are covered
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
