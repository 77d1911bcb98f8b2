// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/gemm/WgmmaMatch.h"

#include "compiler/dialect/Extents.h"
#include "targets/cuda/gemm/TileShape.h"

namespace kiln::cuda {

using namespace mlir;
using mlir::kiln::getExtents;
static std::optional<tile::MmaType> typeOf(const StageContext &context, const Contraction &contraction) {
  linalg::GenericOp op = contraction.op;
  auto elementOf = [&](unsigned number) { return getElementTypeOrSelf(op->getOperand(number)); };
  return elementOf(contraction.a) == elementOf(contraction.b) ? mmaTypeOf(context, contraction) : std::nullopt;
}

namespace {

/// Loops that form one flattened dimension of a tensor: the number of elements, and the distance between two of them.
struct Group {
  AffineExpr extent, pitch;
  bool isInnermost;
};

/// The dimensions of an operand, each of which is indexed by a loop.
class Dimensions {
public:
  Dimensions(linalg::GenericOp op, unsigned number)
      : map(op.getMatchingIndexingMap(&op->getOpOperand(number))),
        extents(getExtents(cast<RankedTensorType>(op->getOperand(number).getType()))), loops(loopExtents(op)) {}

  /// Returns nullopt if the loops are not adjacent in the operand.
  std::optional<Group> find(ArrayRef<unsigned> which) const {
    std::optional<unsigned> first = map.getResultPosition(getAffineDimExpr(which.front(), map.getContext()));
    if (!first || *first + which.size() > map.getNumResults())
      return std::nullopt;
    for (auto [i, loop] : llvm::enumerate(which)) {
      auto index = dyn_cast<AffineDimExpr>(map.getResult(unsigned(*first + i)));
      if (!index || index.getPosition() != loop || extents[*first + i] != loops[loop])
        return std::nullopt;
    }
    const size_t end = *first + which.size();
    return Group{product(ArrayRef(extents).slice(*first, which.size())), product(ArrayRef(extents).drop_front(end)),
                 end == extents.size()};
  }
  size_t count() const { return extents.size(); }

private:
  AffineExpr product(ArrayRef<AffineExpr> factors) const { return mlir::kiln::getProduct(factors, map.getContext()); }

  AffineMap map;
  SmallVector<AffineExpr> extents, loops;
};

} // namespace

static std::optional<WgmmaInput> findInput(const StageContext &context, const Contraction &contraction, bool isA,
                                           tile::MmaType type) {
  linalg::GenericOp op = contraction.op;
  const unsigned number = isA ? contraction.a : contraction.b;
  ArrayRef<unsigned> rows = isA ? contraction.rows : contraction.columns;
  std::optional<Parameter> place = context.placement.find(op->getOperand(number));
  if (!place || rows.empty() || contraction.reduction.empty())
    return std::nullopt;
  const Dimensions dimensions(op, number);
  std::optional<Group> across = dimensions.find(rows), along = dimensions.find(contraction.reduction), batch;
  if (!contraction.batch.empty() && !(batch = dimensions.find(contraction.batch)))
    return std::nullopt;
  const size_t all = rows.size() + contraction.reduction.size() + contraction.batch.size();
  if (!across || !along || dimensions.count() != all || (batch && batch->isInnermost))
    return std::nullopt;
  if (type == tile::MmaType::TF32 && !along->isInnermost)
    return std::nullopt;
  static constexpr TensorMap::Element elements[] = {TensorMap::F16, TensorMap::BF16, TensorMap::TF32};
  const Group &inner = along->isInnermost ? *along : *across, &outer = along->isInnermost ? *across : *along;
  const int64_t bytes = tile::bytesOf(type);
  WgmmaInput input;
  input.isKMajor = along->isInnermost;
  input.map = {*place, elements[size_t(type)], {inner.extent, outer.extent}, {outer.pitch * bytes}, {}};
  if (batch) {
    input.map.extents.push_back(batch->extent);
    input.map.pitches.push_back(batch->pitch * bytes);
  }
  return input;
}

/// Whether TMA copies support the pitches that are known; the others are checked at each launch.
static bool mayHavePitches(const TensorMap &map) {
  return llvm::all_of(map.pitches, [](AffineExpr pitch) {
    auto known = dyn_cast<AffineConstantExpr>(pitch);
    return !known || known.getValue() % 16 == 0;
  });
}

bool isSureToUseTma(const WgmmaProduct &product) {
  auto areKnown = [](const TensorMap &map) { return llvm::all_of(map.pitches, llvm::IsaPred<AffineConstantExpr>); };
  return areKnown(product.a.map) && areKnown(product.b.map);
}

std::optional<WgmmaProduct> findWgmmaProduct(const StageContext &context, const Contraction &contraction) {
  std::optional<tile::MmaType> type = typeOf(context, contraction);
  if (!type)
    return std::nullopt;
  std::optional<WgmmaInput> a = findInput(context, contraction, true, *type),
                            b = findInput(context, contraction, false, *type);
  if (!a || !b || !mayHavePitches(a->map) || !mayHavePitches(b->map))
    return std::nullopt;
  return WgmmaProduct{*type, std::move(*a), std::move(*b)};
}

} // namespace kiln::cuda
