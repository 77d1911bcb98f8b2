// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/attention/WgmmaKernel.h"

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
#include "compiler/schedule/SearchSpace.h"

namespace kiln::cuda {

using namespace mlir;

static constexpr int64_t mostShared = 227 << 10; // per block, in bytes
static constexpr int64_t leastQueries = 64;      // for the kernel's largest number of rows

//===- Tensor maps -------------------------------------------------------===//

/// Returns the tensor map of an operand whose innermost index iterates over channels one by one, and one of whose
/// other indices is the key. The dimensions within a key are flattened to one, and so are those outside of the keys.
static std::optional<AttentionMap> findMap(const StageContext &first, linalg::GenericOp op, unsigned number,
                                           unsigned keyLoop, unsigned channelLoop, tile::MmaType type) {
  std::optional<Parameter> place = first.placement.find(op->getOperand(number));
  AffineMap map = op.getMatchingIndexingMap(&op->getOpOperand(number));
  SmallVector<AffineExpr> extents = mlir::kiln::getExtents(cast<RankedTensorType>(op->getOperand(number).getType()));
  MLIRContext *context = op->getContext();
  std::optional<unsigned> keys = map.getResultPosition(getAffineDimExpr(keyLoop, context));
  if (!place || !keys || *keys + 1 >= extents.size() || extents[*keys] != loopExtents(op)[keyLoop])
    return std::nullopt;
  for (unsigned i = 0; i + 1 < extents.size(); ++i)
    if (map.getResult(i).isFunctionOfDim(channelLoop) || (i != *keys && map.getResult(i).isFunctionOfDim(keyLoop)))
      return std::nullopt;
  AffineExpr inner = map.getResults().back();
  AffineExpr start =
      simplifyAffineExpr(inner - getAffineDimExpr(channelLoop, context), map.getNumDims(), map.getNumSymbols());
  auto width = dyn_cast<AffineConstantExpr>(mlir::kiln::getProduct(ArrayRef(extents).drop_front(*keys + 1), context));
  if (inner.isFunctionOfDim(keyLoop) || start.isFunctionOfDim(channelLoop) || !width || width.getValue() % 8 != 0)
    return std::nullopt;
  AffineExpr pitch = width * 2; // bytes
  AttentionMap found{
      {*place, type == tile::MmaType::F16 ? TensorMap::F16 : TensorMap::BF16, {width, extents[*keys]}, {pitch}, {}},
      *keys};
  if (*keys > 0) {
    found.map.extents.push_back(mlir::kiln::getProduct(ArrayRef(extents).take_front(*keys), context));
    found.map.pitches.push_back(pitch * extents[*keys]);
  }
  return found;
}

std::optional<AttentionMaps> findAttentionMaps(const StageContext &first, const Attention &attention) {
  const int64_t rows = largestValue(extentOf(attention.rows, first.kernel->getContext()), first.kernel);
  if (!attention.mma || !attention.mma->isHalf() || !(attention.mma->factor > 0) || rows < leastQueries ||
      attention.headDim != attention.channels || (attention.headDim != 64 && attention.headDim != 128))
    return std::nullopt;
  std::optional<AttentionMap> keys = findMap(first, attention.scores.op, attention.key, attention.scoreLoops.back(),
                                             attention.scores.reduction.front(), attention.mma->type);
  std::optional<AttentionMap> values =
      findMap(first, attention.outputs.op, attention.value, attention.outputLoops.back(), attention.channelLoop,
              attention.mma->type);
  if (!keys || !values)
    return std::nullopt;
  return AttentionMaps{std::move(*keys), std::move(*values)};
}

//===- Search space ------------------------------------------------------===//

/// Estimates the registers of a consumer thread: scores, outputs, weights as pairs, addresses.
static int64_t registersOf(const AttentionWgmmaShape &s) { return s.keys / 2 + s.channels / 2 + s.keys / 4 + 40; }

AttentionWgmmaShape attentionWgmmaShapeOf(const Attention &attention, const ScheduleConfig &config) {
  return {config.at("wgmma_queries") / 64,
          config.at("wgmma_keys"),
          config.at("wgmma_key_stages"),
          attention.headDim,
          attention.channels,
          config.at("wgmma_late") != 0};
}

BlockNeeds needsOf(const AttentionWgmmaShape &s) {
  BlockNeeds needs;
  needs.threads = s.threads();
  needs.registers = 65536 / s.threads() / 8 * 8; // at the start; producers then give some to consumers
  needs.sharedBytes = s.sharedBytes();
  return needs;
}

SearchSpace attentionWgmmaSpace(const StageContext &first, const Attention &attention) {
  SearchSpace space;
  if (!findAttentionMaps(first, attention))
    return space;
  AttentionWgmmaShape defaults{2, 128, 2, attention.headDim, attention.channels, true};
  for (AttentionWgmmaShape more = defaults; ++more.stages <= 4 && more.sharedBytes() <= mostShared;)
    defaults = more;
  space.push_back(makeParameter("wgmma_queries", {128, 192}, defaults.queries()));
  space.push_back(makeParameter("wgmma_keys", {64, 80, 96, 112, 128, 144, 160, 176, 192}, defaults.keys));
  space.push_back(makeParameter("wgmma_key_stages", {2, 3, 4}, defaults.stages));
  space.push_back(makeParameter("wgmma_late", {0, 1}, defaults.isLate));
  auto shapeOf = [attention](const ScheduleConfig &config) { return attentionWgmmaShapeOf(attention, config); };
  space.rules = {
      {"227 KiB of shared memory at most for wgmma_queries and wgmma_key_stages of 2 * wgmma_keys, each of "
       "all channels",
       [=](const ScheduleConfig &p) { return shapeOf(p).sharedBytes() <= mostShared; }},
      {"240 registers at most, 160 of 192 wgmma_queries: 3 * wgmma_keys / 4 + channels / 2 + 40",
       [=](const ScheduleConfig &p) { return registersOf(shapeOf(p)) <= (shapeOf(p).groups > 2 ? 160 : 240); }}};
  return space;
}

} // namespace kiln::cuda
