// SPDX-License-Identifier: Apache-2.0
#include "targets/halide/Structure.h"

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/StoredParts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

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

std::optional<Contraction> asContraction(linalg::GenericOp op, bool mayScale) {
  std::optional<::kiln::Contraction> found = contractionOf(op);
  if (!found || (found->scale && !mayScale))
    return std::nullopt;
  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (!out.isProjectedPermutation() || out.getNumResults() == 0)
    return std::nullopt;
  SmallVector<unsigned> parallel;
  for (unsigned i = 0; i < out.getNumResults(); ++i)
    parallel.push_back(out.getDimPosition(i));
  Contraction c{*found};
  c.n = parallel.back();
  if (!c.sortLoops(parallel) || !c.dependsOn(c.b, c.n))
    return std::nullopt;
  for (unsigned loop : llvm::reverse(ArrayRef(parallel).drop_back())) {
    if (!c.m && c.dependsOn(c.a, loop) && !c.dependsOn(c.b, loop))
      c.m = loop;
    else
      c.outer.push_back(loop);
  }
  if (auto tiled = dyn_cast_if_present<mlir::kiln::TiledAttr>(
          cast<RankedTensorType>(op->getOperand(c.b).getType()).getEncoding())) {
    auto along = dyn_cast<AffineDimExpr>(op.getIndexingMapsArray()[c.b].getResult(tiled.getDim()));
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
    } else if (isOfBytes && storage && storage.isGrouped() && storage.getElement().isSignlessInteger(4)) {
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

/// Whether the map is the identity, except that a dimension of one element may have the index 0.
static bool readsElementwise(AffineMap map, RankedTensorType type) {
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
    if (!user || !isElementwise(user) || !readsElementwise(user.getMatchingIndexingMap(&use), type) ||
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
