// SPDX-License-Identifier: Apache-2.0
#include "compiler/emit/WeightLayout.h"

#include "compiler/dialect/ElementTypes.h"
#include "compiler/dialect/StoredParts.h"
#include "kiln/tensor.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
namespace kd = mlir::kiln;

namespace kiln {

/// Records where the sources of `parameter` go, given the range of their join.
static LogicalResult placeSources(kd::ParameterOp parameter, PackedRange range, const ModelInterface &model,
                                  std::vector<WeightPlacement> &places, std::vector<bool> &placed) {
  auto type = cast<RankedTensorType>(parameter.getResult().getType());
  auto tiled = dyn_cast_or_null<kd::TiledAttr>(type.getEncoding());
  int64_t joinDim = parameter.getJoinDim();
  bool isJoined = parameter.getSources().size() > 1;
  SmallVector<kd::StoredPart, 3> parts = kd::getStoredParts(type);
  if (isJoined && joinDim != (tiled ? static_cast<int64_t>(tiled.getDim()) : 0))
    return parameter.emitOpError("cannot be packed: its sources are joined along dimension ")
           << joinDim << ", its layout splits another";
  uint64_t shift = 0;
  for (auto [i, attribute] : llvm::enumerate(parameter.getSources())) {
    StringRef source = cast<StringAttr>(attribute).getValue();
    const WeightInterface *weight = model.findWeight(source.str());
    if (!weight)
      return parameter.emitOpError("names a weight that the model lacks: ") << source;
    const size_t index = weight - model.weights.data();
    WeightPlacement place{range.offset, range.stride, 0, 0, shift, *kd::toElementType(kd::getStoredElement(type))};
    if (tiled) {
      place.tile = tiled.getSize();
      place.dim = tiled.getDim();
      if (parts.size() > 1)
        place.scales = parts[1].offset;
      if (parts.size() > 2)
        place.zeros = parts[2].offset;
      if (kd::StorageAttr storage = tiled.getStorage())
        place.group = tiled.hasWords() ? tiled.getInterleave() : storage.getGroup();
    }
    shift += tiled ? weight->shape[place.dim] : ShapedType::getNumElements(weight->shape);
    if (placed[index] && (places[index].offset != place.offset || places[index].shift != place.shift))
      return parameter.emitOpError("would pack a second copy of weight ") << source;
    places[index] = place;
    placed[index] = true;
  }
  return success();
}

FailureOr<WeightLayout> WeightLayout::compute(ModuleOp module, const ModelInterface &model) {
  WeightLayout layout;
  layout.places.resize(model.weights.size());
  std::vector<bool> placed(model.weights.size(), false);
  llvm::DenseMap<std::pair<Attribute, Type>, PackedRange> known;
  WalkResult result = module.walk([&](kd::ParameterOp parameter) {
    auto type = cast<RankedTensorType>(parameter.getResult().getType());
    if (auto tiled = dyn_cast_or_null<kd::TiledAttr>(type.getEncoding()); tiled && !tiled.isGenerated()) {
      parameter.emitOpError("requires a layout that weights are packed in, without interleave, got ") << tiled;
      return WalkResult::interrupt();
    }
    auto [entry, isNew] = known.try_emplace({parameter.getSourcesAttr(), type});
    if (isNew) {
      PackedRange &range = entry->second;
      range.offset = layout.total;
      range.stride = llvm::alignTo(kd::getStoredBytes(type), 64);
      layout.total += range.stride * parameter.getCopies();
      if (failed(placeSources(parameter, range, model, layout.places, placed)))
        return WalkResult::interrupt();
    }
    layout.ranges[parameter] = entry->second;
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  // A weight that no entry uses is still part of the file's contract; it takes room behind the others.
  for (size_t i = 0; i < placed.size(); ++i) {
    if (placed[i])
      continue;
    uint64_t bytes = stored_bytes(model.weights[i].element, ShapedType::getNumElements(model.weights[i].shape));
    layout.places[i] = {layout.total, llvm::alignTo(bytes, 64), 0, 0, 0, model.weights[i].element};
    layout.total += layout.places[i].stride * model.weights[i].copies;
  }
  return layout;
}

} // namespace kiln
