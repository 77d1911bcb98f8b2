// SPDX-License-Identifier: Apache-2.0
#include "targets/halide/Structure.h"

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/StoredParts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

namespace kiln::halide {

using namespace mlir;

LogicalResult verifyKernel(func::FuncOp kernel) {
  const KernelFunction view(kernel);
  if (failed(view.verify()))
    return failure();
  auto check = [&](Value value) -> LogicalResult {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    auto tiled = type ? dyn_cast_if_present<mlir::kiln::TiledAttr>(type.getEncoding()) : mlir::kiln::TiledAttr();
    if (tiled && !tiled.isGenerated())
      return emitError(value.getLoc())
             << "target halide: unsupported layout of a weight; expected one without interleave, got " << tiled;
    return view.verifyExtents(value);
  };
  for (BlockArgument argument : kernel.getArguments())
    if (failed(check(argument)))
      return failure();
  for (Operation &op : kernel.getBody().front())
    for (Value result : op.getResults())
      if (failed(check(result)))
        return failure();
  return success();
}

Type widestElement(func::FuncOp kernel) {
  Type widest = IntegerType::get(kernel.getContext(), 1);
  auto widen = [&](Type type) {
    Type element = getElementTypeOrSelf(type);
    if (element.isIntOrFloat() && element.getIntOrFloatBitWidth() > widest.getIntOrFloatBitWidth())
      widest = element;
  };
  kernel.walk([&](linalg::GenericOp op) {
    llvm::for_each(op->getResultTypes(), widen);
    for (Operation &inner : *op.getBlock())
      llvm::for_each(inner.getResultTypes(), widen);
  });
  return widest;
}

int64_t bytesOf(Value tensor, int64_t elements) {
  return mlir::kiln::storedBytes(mlir::kiln::getStoredElement(cast<RankedTensorType>(tensor.getType())), elements);
}

int64_t largestValue(AffineExpr extent, Operation *inKernel) {
  auto bounds = KernelFunction::of(inKernel).boundsOf(extent);
  return bounds ? bounds->max : std::numeric_limits<int32_t>::max();
}

/// Returns the number of the region argument that the value is, through conversions; -1 if it is none.
static int regionArgument(Value value) {
  while (auto *op = value.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::ExtSIOp, arith::SIToFPOp>(op))
      return -1;
    value = op->getOperand(0);
  }
  return cast<BlockArgument>(value).getArgNumber();
}

/// Returns the region argument that the value is, through conversions, and, for integers, the argument of the scale by
/// which they are multiplied; -1 for none.
static std::pair<int, int> scaledArgument(Value value) {
  auto product = value.getDefiningOp<arith::MulFOp>();
  if (!product)
    return {regionArgument(value), -1};
  int numbers = regionArgument(product.getLhs()), scale = regionArgument(product.getRhs());
  return product.getLhs().getDefiningOp<arith::SIToFPOp>() ? std::pair(numbers, scale) : std::pair(-1, -1);
}

/// Returns the other operand of a binary op one of whose operands is `value`; null if none is.
static Value otherOperand(Operation *op, Value value) {
  if (op->getNumOperands() != 2)
    return {};
  return op->getOperand(0) == value ? op->getOperand(1) : op->getOperand(1) == value ? op->getOperand(0) : Value();
}

Operation *reorderableCombiner(linalg::GenericOp op) {
  if (op.getNumDpsInits() != 1 || op.getNumReductionLoops() == 0)
    return nullptr;
  BlockArgument accumulator = op.getRegionOutputArgs()[0];
  Operation *combiner = op.getBlock()->getTerminator()->getOperand(0).getDefiningOp();
  if (!combiner || !accumulator.hasOneUse() || !otherOperand(combiner, accumulator) ||
      !isa<arith::AddFOp, arith::AddIOp, arith::MaximumFOp, arith::MaxNumFOp, arith::MinimumFOp, arith::MinNumFOp,
           arith::MaxSIOp, arith::MinSIOp>(combiner))
    return nullptr;
  return combiner;
}

static bool isZeroFill(Value value) {
  auto fill = value.getDefiningOp<linalg::FillOp>();
  return fill && (matchPattern(fill.getInputs()[0], m_AnyZeroFloat()) || matchPattern(fill.getInputs()[0], m_Zero()));
}

Type Contraction::sumType() const { return getElementTypeOrSelf(op->getResult(0)); }

std::optional<Contraction> asContraction(linalg::GenericOp op, bool mayScale) {
  Operation *add = reorderableCombiner(op);
  if (!add || !isa<arith::AddFOp, arith::AddIOp>(add) || !isZeroFill(op.getDpsInits()[0]))
    return std::nullopt;
  Value product = otherOperand(add, op.getRegionOutputArgs()[0]);
  auto *mul = product.getDefiningOp();
  if (!isa_and_nonnull<arith::MulFOp, arith::MulIOp>(mul))
    return std::nullopt;
  int left = regionArgument(mul->getOperand(0));
  auto [right, scale] = scaledArgument(mul->getOperand(1));
  int inputs = op.getNumDpsInputs();
  if (left < 0 || right < 0 || left == right || left >= inputs || right >= inputs || (scale >= 0 && !mayScale))
    return std::nullopt;
  // Other inputs may only determine extents.
  for (int i = 0; i < inputs; ++i)
    if (i != left && i != right && i != scale && !op.getBlock()->getArgument(i).use_empty())
      return std::nullopt;

  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (!out.isProjectedPermutation() || out.getNumResults() == 0)
    return std::nullopt;
  Contraction c;
  c.op = op;
  c.n = out.getDimPosition(out.getNumResults() - 1);
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  if (maps[left].isFunctionOfDim(c.n) == maps[right].isFunctionOfDim(c.n))
    return std::nullopt;
  c.a = maps[left].isFunctionOfDim(c.n) ? right : left;
  c.b = c.a == unsigned(left) ? right : left;
  if (scale >= 0) {
    if (c.b != unsigned(right) || scale >= inputs)
      return std::nullopt;
    c.scale = scale;
  }
  for (unsigned i = out.getNumResults() - 1; i-- > 0;) {
    unsigned loop = out.getDimPosition(i);
    if (!c.m && maps[c.a].isFunctionOfDim(loop) && !maps[c.b].isFunctionOfDim(loop))
      c.m = loop;
    else
      c.batch.push_back(loop);
  }
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction)
      c.reduction.push_back(loop);
  if (auto tiled = dyn_cast_if_present<mlir::kiln::TiledAttr>(
          cast<RankedTensorType>(op->getOperand(c.b).getType()).getEncoding())) {
    auto along = dyn_cast<AffineDimExpr>(maps[c.b].getResult(tiled.getDim()));
    if (!along || !isa<BlockArgument>(op->getOperand(c.b)))
      return std::nullopt;
    if (llvm::is_contained(c.reduction, along.getPosition()))
      return c; // tiled along k: of as little use as a dense weight
    if (along.getPosition() != c.n)
      return std::nullopt;
    c.tile = tiled.getSize();
    const bool isOfBytes = getElementTypeOrSelf(op->getOperand(c.a)).isInteger(8) && c.reduction.size() == 1;
    const mlir::kiln::StorageAttr storage = tiled.getStorage();
    // Scales of groups are indexed by the row and the K position of a matrix; a convolution's weight is scaled as it is
    // read.
    if (storage && storage.isGrouped() && cast<RankedTensorType>(op->getOperand(c.b).getType()).getRank() != 2)
      return std::nullopt;
    if (isOfBytes && tiled.isVnni()) {
      c.interleave = tiled.getInterleave();
    } else if (isOfBytes && storage && storage.isGrouped()) {
      c.interleave = mlir::kiln::elementsOfWord;
      c.group = storage.getGroup();
    }
  }
  return c;
}

std::optional<Contraction> onlyContraction(func::FuncOp kernel) {
  std::optional<Contraction> found;
  for (linalg::GenericOp op : kernel.getOps<linalg::GenericOp>())
    if (std::optional<Contraction> contraction = asContraction(op)) {
      if (found)
        return std::nullopt;
      found = contraction;
    }
  return found;
}

int64_t staticExtent(linalg::GenericOp op, unsigned loop) {
  AffineExpr extent = loopExtent(op, loop);
  auto constant = extent ? dyn_cast<AffineConstantExpr>(extent) : AffineConstantExpr();
  return constant ? constant.getValue() : ShapedType::kDynamic;
}

int64_t staticK(const Contraction &contraction) {
  const auto &loops = contraction.reduction;
  return loops.size() == 1 ? staticExtent(contraction.op, loops[0]) : ShapedType::kDynamic;
}

int64_t staticSteps(const Contraction &contraction) {
  const int64_t kExtent = staticK(contraction);
  return contraction.isVnni() ? llvm::divideCeilSigned(kExtent, contraction.interleave) : kExtent;
}

int64_t rowInterleave(const Contraction &contraction) { return std::min<int64_t>(contraction.interleave, 4); }

int64_t rowInterleavesPerStep(const Contraction &contraction) {
  return contraction.interleave / rowInterleave(contraction);
}

int64_t bytesOfStep(const Contraction &contraction, int64_t columns) {
  return bytesOf(contraction.op->getOperand(contraction.b), columns * std::max<int64_t>(contraction.interleave, 1));
}

int64_t largestExtent(linalg::GenericOp op, unsigned loop) {
  AffineExpr extent = loopExtent(op, loop);
  return extent ? largestValue(extent, op) : 1;
}

int64_t smallestExtent(linalg::GenericOp op, unsigned loop) {
  AffineExpr extent = loopExtent(op, loop);
  auto bounds = extent ? KernelFunction::of(op).boundsOf(extent) : std::nullopt;
  return bounds ? bounds->min : 0;
}

std::optional<unsigned> symbolOfExtent(linalg::GenericOp op, unsigned loop) {
  AffineExpr extent = loopExtent(op, loop);
  if (!extent || !isa<AffineSymbolExpr>(extent))
    return std::nullopt;
  return cast<AffineSymbolExpr>(extent).getPosition();
}

SmallVector<linalg::GenericOp> genericUsers(Value value) {
  llvm::SetVector<Operation *> users;
  for (Operation *user : value.getUsers()) {
    // A tensor.extract inside a region is a use by the generic around it.
    auto generic = dyn_cast<linalg::GenericOp>(user);
    if (!generic)
      generic = user->getParentOfType<linalg::GenericOp>();
    if (generic)
      users.insert(generic);
  }
  SmallVector<linalg::GenericOp> result;
  for (Operation *user : users)
    result.push_back(cast<linalg::GenericOp>(user));
  llvm::sort(result, [](linalg::GenericOp a, linalg::GenericOp b) { return a->isBeforeInBlock(b); });
  return result;
}

/// Whether the map is the identity, except that a dimension of one element may have the index 0.
static bool isElementwise(AffineMap map, RankedTensorType type) {
  if (map.getNumResults() != map.getNumDims())
    return false;
  for (auto [i, index] : llvm::enumerate(map.getResults()))
    if (index != getAffineDimExpr(i, map.getContext()) && !(type.getDimSize(i) == 1 && index == 0))
      return false;
  return true;
}

/// Whether all uses of the value are pointwise.
static bool usesArePointwise(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  for (OpOperand &use : value.getUses()) {
    if (isa<func::ReturnOp>(use.getOwner()))
      continue;
    auto user = dyn_cast<linalg::GenericOp>(use.getOwner());
    if (!user || user.getNumReductionLoops() || !isElementwise(user.getMatchingIndexingMap(&use), type) ||
        user.getNumDpsInits() != 1 || !user.getMatchingIndexingMap(user.getDpsInitOperand(0)).isIdentity() ||
        !usesArePointwise(user.getResult(0)))
      return false;
  }
  return true;
}

static bool haveOneShape(Type a, Type b) {
  auto left = dyn_cast<RankedTensorType>(a), right = dyn_cast<RankedTensorType>(b);
  return left && right && left.getShape() == right.getShape() && left.getEncoding() == right.getEncoding();
}

bool hasPointwiseUses(linalg::GenericOp op) {
  auto kernel = op->getParentOfType<func::FuncOp>();
  return llvm::all_of(kernel.getResultTypes(),
                      [&](Type result) { return haveOneShape(result, op.getResult(0).getType()); }) &&
         usesArePointwise(op.getResult(0));
}

//===- Alignment ---------------------------------------------------------===//

Alignment::Alignment(func::FuncOp kernel) {
  for (Value value : kernel.getBody().front().getTerminator()->getOperands())
    for (unsigned i = 0, rank = cast<RankedTensorType>(value.getType()).getRank(); i < rank; ++i)
      merge(value, i, i);
  for (Operation &op : llvm::reverse(kernel.getBody().front()))
    if (auto generic = dyn_cast<linalg::GenericOp>(op))
      visit(generic);
}

int Alignment::get(Value value, unsigned dimension) const {
  auto found = table.find({value, dimension});
  return found == table.end() ? -2 : found->second;
}

void Alignment::merge(Value value, unsigned dimension, int with) {
  auto [entry, isNew] = table.try_emplace({value, dimension}, with);
  if (!isNew && entry->second != with)
    entry->second = -1;
}

void Alignment::visit(linalg::GenericOp op) {
  SmallVector<int> loops(op.getNumLoops(), -1);
  for (auto [init, result] : llvm::zip_equal(op.getDpsInitsMutable(), op.getResults()))
    for (auto [i, expr] : llvm::enumerate(op.getMatchingIndexingMap(&init).getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr); dim && get(result, i) >= 0)
        loops[dim.getPosition()] = get(result, i);
  for (OpOperand *input : op.getDpsInputOperands())
    for (auto [i, expr] : llvm::enumerate(op.getMatchingIndexingMap(input).getResults())) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      merge(input->get(), i, dim ? loops[dim.getPosition()] : -1);
    }
  op.getRegion().walk([&](tensor::ExtractOp extract) {
    for (unsigned i = 0; i < extract.getIndices().size(); ++i)
      merge(extract.getTensor(), i, -1);
  });
}

bool hasOneResultShape(func::FuncOp kernel) {
  ArrayRef<Type> types = kernel.getResultTypes();
  return !types.empty() && llvm::all_of(types, [&](Type type) { return haveOneShape(type, types.front()); });
}

/// Returns the index along which an operand is read. A batch-invariant kernel goes along the operation's last axis,
/// wherever that is in memory: a transpose before it may be in this kernel or in an earlier one.
static AffineExpr innermostIndex(linalg::GenericOp op, AffineMap map) {
  if (!isBatchInvariant(op) || !map.isProjectedPermutation(/*allowZeroInResults=*/true))
    return map.getResults().back();
  auto loopOf = [](AffineExpr index) {
    auto dim = dyn_cast<AffineDimExpr>(index);
    return dim ? int(dim.getPosition()) : -1;
  };
  return *llvm::max_element(map.getResults(), [&](AffineExpr a, AffineExpr b) { return loopOf(a) < loopOf(b); });
}

bool readsAlongReduction(linalg::GenericOp op) {
  SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    if (map.getNumResults() == 0 || op.getMatchingBlockArgument(input).use_empty())
      continue;
    AffineExpr index = innermostIndex(op, map);
    for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
      if (kinds[loop] == utils::IteratorType::reduction && index.isFunctionOfDim(loop))
        return true;
  }
  return false;
}

} // namespace kiln::halide
