// SPDX-License-Identifier: Apache-2.0
#include "compiler/emit/WeightLayout.h"

#include "compiler/dialect/ElementTypes.h"
#include "compiler/dialect/StoredParts.h"
#include "kiln/tensor.h"
#include "runtime/src/model.h"
#include "llvm/ADT/DenseSet.h"
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

/// Stages have their weights side by side if the weights lie in this order: those of the first stage alone, of the
/// first and the last, of all, of the last alone.
static int orderOf(const WeightInterface &weight) {
  auto isIn = [&](uint32_t role) { return (weight.absent >> role & 1) == 0; };
  if (isIn(KILN_ROLE_FIRST))
    return !isIn(KILN_ROLE_LAST) ? 0 : isIn(KILN_ROLE_MIDDLE) ? 2 : 1;
  return 3;
}

/// What is asked for, each once, in the order in which it lies.
static FailureOr<std::vector<kd::ParameterOp>> findRequests(ModuleOp module, const ModelInterface &model) {
  std::vector<kd::ParameterOp> requests;
  llvm::DenseSet<std::pair<Attribute, Type>> known;
  WalkResult result = module.walk([&](kd::ParameterOp parameter) {
    auto type = cast<RankedTensorType>(parameter.getResult().getType());
    if (auto tiled = dyn_cast_or_null<kd::TiledAttr>(type.getEncoding()); tiled && !tiled.isGenerated()) {
      parameter.emitOpError("requires a layout that weights are packed in, without interleave, got ") << tiled;
      return WalkResult::interrupt();
    }
    if (known.insert({parameter.getSourcesAttr(), type}).second)
      requests.push_back(parameter);
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  llvm::stable_sort(requests, [&](kd::ParameterOp left, kd::ParameterOp right) {
    auto order = [&](kd::ParameterOp parameter) {
      const WeightInterface *weight = model.findWeight(cast<StringAttr>(parameter.getSources()[0]).str());
      return weight ? orderOf(*weight) : 0; // placeSources tells of it
    };
    return order(left) < order(right);
  });
  return requests;
}

/// From the first of its weights to the end of the last.
static WeightShare findShare(const ModelInterface &model, const std::vector<WeightPlacement> &places, uint32_t role) {
  uint64_t first = UINT64_MAX, end = 0;
  for (auto [weight, place] : llvm::zip_equal(model.weights, places))
    if ((weight.absent >> role & 1) == 0) {
      first = std::min(first, place.offset);
      end = std::max(end, place.offset + place.stride * weight.copies);
    }
  return end ? WeightShare{first, end - first} : WeightShare();
}

FailureOr<WeightLayout> WeightLayout::compute(ModuleOp module, const ModelInterface &model) {
  WeightLayout layout;
  layout.places.resize(model.weights.size());
  std::vector<bool> placed(model.weights.size(), false);
  FailureOr<std::vector<kd::ParameterOp>> requests = findRequests(module, model);
  if (failed(requests))
    return failure();
  llvm::DenseMap<std::pair<Attribute, Type>, PackedRange> known;
  for (kd::ParameterOp parameter : *requests) {
    auto type = cast<RankedTensorType>(parameter.getResult().getType());
    const PackedRange range{layout.total, llvm::alignTo(kd::getStoredBytes(type), 64)};
    known[{parameter.getSourcesAttr(), type}] = range;
    layout.total += range.stride * parameter.getCopies();
    if (failed(placeSources(parameter, range, model, layout.places, placed)))
      return failure();
  }
  module.walk([&](kd::ParameterOp parameter) {
    layout.ranges[parameter] = known.lookup({parameter.getSourcesAttr(), parameter.getResult().getType()});
  });
  // A weight that no entry uses is still part of the file's contract; it takes room behind the others.
  for (size_t i = 0; i < placed.size(); ++i) {
    if (placed[i])
      continue;
    uint64_t bytes = stored_bytes(model.weights[i].element, ShapedType::getNumElements(model.weights[i].shape));
    layout.places[i] = {layout.total, llvm::alignTo(bytes, 64), 0, 0, 0, model.weights[i].element};
    layout.total += layout.places[i].stride * model.weights[i].copies;
  }
  for (uint32_t role = 0; model.stages > 1 && role < (model.stages > 2 ? 3 : 2); ++role)
    layout.parts.push_back(findShare(model, layout.places, role));
  return layout;
}

} // namespace kiln
