// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/AttentionWgmma.h"

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
#include "compiler/schedule/SearchSpace.h"

namespace kiln::cuda {

using namespace mlir;

static constexpr int64_t mostShared = 227 << 10; // bytes of a block
static constexpr int64_t leastQueries = 64;      // that there are to be at most

//===- Maps --------------------------------------------------------------===//

/// Of an operand whose innermost index counts channels one by one from a multiple of a block's, and one other of whose
/// indices is the key.
static std::optional<TensorMap> findMap(const StepContext &first, linalg::GenericOp op, unsigned number,
                                        unsigned keyLoop, unsigned channelLoop, tile::MmaType type) {
  std::optional<Parameter> place = first.placement.find(op->getOperand(number));
  AffineMap map = op.getMatchingIndexingMap(&op->getOpOperand(number));
  SmallVector<AffineExpr> extents = mlir::kiln::getExtents(cast<RankedTensorType>(op->getOperand(number).getType()));
  MLIRContext *context = op->getContext();
  if (!place || extents.size() < 2 || extents.size() > 3)
    return std::nullopt;
  bool hasKeys = false;
  for (auto [index, extent] : llvm::zip_equal(map.getResults().drop_back(), ArrayRef(extents).drop_back())) {
    const bool isKey = index == getAffineDimExpr(keyLoop, context);
    if (index.isFunctionOfDim(channelLoop) || (!isKey && index.isFunctionOfDim(keyLoop)) ||
        (isKey && (hasKeys || extent != loopExtents(op)[keyLoop])))
      return std::nullopt;
    hasKeys |= isKey;
  }
  AffineExpr inner = map.getResults().back();
  AffineExpr start =
      simplifyAffineExpr(inner - getAffineDimExpr(channelLoop, context), map.getNumDims(), map.getNumSymbols());
  auto width = dyn_cast<AffineConstantExpr>(extents.back());
  if (!hasKeys || inner.isFunctionOfDim(keyLoop) || start.isFunctionOfDim(channelLoop) ||
      !start.isMultipleOf(AttentionWgmmaShape::blockChannels) || !width || width.getValue() % 8 != 0)
    return std::nullopt;
  TensorMap found{*place, type == tile::MmaType::F16 ? TensorMap::F16 : TensorMap::BF16, {}, {}, {}};
  AffineExpr pitch = getAffineConstantExpr(2, context); // bytes
  for (AffineExpr extent : llvm::reverse(extents)) {
    if (!found.extents.empty())
      found.pitches.push_back(pitch);
    found.extents.push_back(extent);
    pitch = pitch * extent;
  }
  return found;
}

/// Weights to the base of 2: e^x, which a spec's own softmax has, would be one more product for each.
static bool isBinary(const Attention &attention) {
  linalg::GenericOp weights = attention.weights;
  auto base = weights->getAttrOfType<FloatAttr>(mlir::kiln::exponentialBaseAttrName);
  return base && base.getValueAsDouble() == 1;
}

std::optional<AttentionMaps> findAttentionMaps(const StepContext &first, const Attention &attention) {
  const int64_t rows = largestValue(extentOf(attention.rows, first.kernel->getContext()), first.kernel);
  if (!attention.mma || !(attention.mma->factor > 0) || rows < leastQueries || !isBinary(attention) ||
      attention.depth != attention.channels || (attention.depth != 64 && attention.depth != 128))
    return std::nullopt;
  std::optional<TensorMap> keys = findMap(first, attention.scores.op, attention.key, attention.scoreLoops.back(),
                                          attention.scores.depth.front(), attention.mma->type);
  std::optional<TensorMap> values = findMap(first, attention.outputs.op, attention.value, attention.outputLoops.back(),
                                            attention.channelLoop, attention.mma->type);
  if (!keys || !values)
    return std::nullopt;
  return AttentionMaps{std::move(*keys), std::move(*values)};
}

//===- Search space ------------------------------------------------------===//

/// Of a thread that multiplies: scores, outputs, weights as pairs, addresses.
static int64_t registersOf(const AttentionWgmmaShape &s) { return s.keys / 2 + s.channels / 2 + s.keys / 4 + 40; }

AttentionWgmmaShape attentionWgmmaShapeOf(const Attention &attention, const SchedulePoint &point) {
  return {point.at("wgmma_queries") / 64,
          point.at("wgmma_keys"),
          point.at("wgmma_key_stages"),
          attention.depth,
          attention.channels,
          point.at("wgmma_late") != 0};
}

BlockNeeds needsOf(const AttentionWgmmaShape &s) {
  BlockNeeds needs;
  needs.threads = s.threads();
  needs.registers = 65536 / s.threads() / 8 * 8; // at the start; then some are given to those that multiply
  needs.sharedBytes = s.sharedBytes();
  return needs;
}

SearchSpace attentionWgmmaSpace(const StepContext &first, const Attention &attention) {
  SearchSpace space;
  if (!findAttentionMaps(first, attention))
    return space;
  AttentionWgmmaShape preset{2, 128, 2, attention.depth, attention.channels, true};
  for (AttentionWgmmaShape more = preset; ++more.stages <= 4 && more.sharedBytes() <= mostShared;)
    preset = more;
  space.push_back(makeParameter("wgmma_queries", {128, 192}, preset.queries()));
  space.push_back(makeParameter("wgmma_keys", {64, 80, 96, 112, 128, 144, 160, 176, 192}, preset.keys));
  space.push_back(makeParameter("wgmma_key_stages", {2, 3, 4}, preset.stages));
  space.push_back(makeParameter("wgmma_late", {0, 1}, preset.isLate));
  auto shapeOf = [attention](const SchedulePoint &point) { return attentionWgmmaShapeOf(attention, point); };
  space.rules = {
      {"227 KiB of shared memory at most for wgmma_queries and wgmma_key_stages of 2 * wgmma_keys, each of "
       "all channels",
       [=](const SchedulePoint &p) { return shapeOf(p).sharedBytes() <= mostShared; }},
      {"240 registers at most, 160 of 192 wgmma_queries: 3 * wgmma_keys / 4 + channels / 2 + 40",
       [=](const SchedulePoint &p) { return registersOf(shapeOf(p)) <= (shapeOf(p).groups > 2 ? 160 : 240); }}};
  return space;
}

} // namespace kiln::cuda
