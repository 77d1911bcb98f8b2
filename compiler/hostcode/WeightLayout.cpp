// SPDX-License-Identifier: Apache-2.0
#include "compiler/hostcode/WeightLayout.h"

#include "compiler/dialect/ElementTypes.h"
#include "compiler/dialect/StageRoles.h"
#include "compiler/dialect/StoredParts.h"
#include "kiln/tensor.h"
#include "runtime/src/core/model.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
namespace kd = mlir::kiln;

namespace kiln {

/// Records the places of the sources of `parameter`, given the range of their concatenation.
static LogicalResult placeSources(kd::ParameterOp parameter, PackedRange range, const ModelInterface &model,
                                  MutableArrayRef<WeightPlacement> places, std::vector<bool> &placed) {
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
      if (tiled.getStorage())
        place.group = kd::getPlacementGroup(tiled);
    }
    shift += tiled ? weight->shape[place.dim] : ShapedType::getNumElements(weight->shape);
    if (placed[index] && (places[index].offset != place.offset || places[index].shift != place.shift))
      return parameter.emitOpError("would pack a second copy of weight ") << source;
    places[index] = place;
    placed[index] = true;
  }
  return success();
}

/// Returns the parameters in functions with a role.
static std::vector<kd::ParameterOp> findParameters(ModuleOp module, StringRef role) {
  std::vector<kd::ParameterOp> parameters;
  for (auto function : module.getOps<func::FuncOp>()) {
    auto own = function->getAttrOfType<StringAttr>(kd::roleAttrName);
    if ((own ? own.getValue() : "") == role)
      function.walk([&](kd::ParameterOp parameter) { parameters.push_back(parameter); });
  }
  return parameters;
}

namespace {
/// The packed copy of stages with one role.
struct RoleLayout {
  llvm::DenseMap<std::pair<Attribute, Type>, PackedRange> ranges; // keyed by keyOf
  std::vector<bool> placed;                                       // per weight
  uint64_t bytes = 0;
};
} // namespace

/// Returns the key of a range: the tensor's sources and its layout.
static std::pair<Attribute, Type> keyOf(kd::ParameterOp parameter) {
  return {parameter.getSourcesAttr(), parameter.getResult().getType()};
}

static FailureOr<RoleLayout> layOut(ModuleOp module, const ModelInterface &model, StringRef role,
                                    MutableArrayRef<WeightPlacement> places, std::vector<DerivedWeight> &derived) {
  RoleLayout layout;
  layout.placed.resize(places.size());
  for (kd::ParameterOp parameter : findParameters(module, role)) {
    auto type = cast<RankedTensorType>(parameter.getResult().getType());
    if (auto tiled = dyn_cast_or_null<kd::TiledAttr>(type.getEncoding()); tiled && !tiled.isGenerated())
      return parameter.emitOpError(
                 "has an unsupported layout; expected one that weights are packed in, without interleave, got ")
             << tiled;
    const PackedRange range{layout.bytes, llvm::alignTo(kd::getStoredBytes(type), 64)};
    if (!layout.ranges.try_emplace(keyOf(parameter), range).second)
      continue;
    layout.bytes += range.stride * parameter.getCopies();
    if (parameter.getDerived())
      derived.push_back({cast<StringAttr>(parameter.getSources()[0]).str(), range.offset, range.stride,
                         static_cast<uint64_t>(kd::getStoredBytes(type)),
                         static_cast<uint32_t>(parameter.getCopies())});
    else if (failed(placeSources(parameter, range, model, places, layout.placed)))
      return failure();
  }
  return layout;
}

/// Returns how many copies of a weight a process has: the one process, or a stage with the role.
static int64_t copiesOf(const ModelInterface &model, size_t weight, uint32_t role) {
  const int64_t copies = model.weights[weight].copies;
  return model.parallel ? model.parallel->copiesOf(model.parallel->weights[weight], copies, role) : copies;
}

/// A weight that no entry uses is still part of the file's contract. It is stored after the others.
static void placeUnused(RoleLayout &layout, const ModelInterface &model, uint32_t role,
                        MutableArrayRef<WeightPlacement> places) {
  for (auto [i, weight] : llvm::enumerate(model.weights)) {
    const int64_t copies = copiesOf(model, i, role);
    if (layout.placed[i] || copies == 0)
      continue;
    const uint64_t bytes = stored_bytes(weight.element, ShapedType::getNumElements(weight.shape));
    places[i] = {layout.bytes, llvm::alignTo(bytes, 64), 0, 0, 0, weight.element};
    layout.bytes += places[i].stride * copies;
    layout.placed[i] = true;
  }
}

FailureOr<WeightLayout> WeightLayout::compute(ModuleOp module, const ModelInterface &model) {
  WeightLayout layout;
  const size_t count = model.weights.size();
  const SmallVector<kd::StageRole> roles = kd::getStageRoles(module);
  std::vector<const WeightPlacement *> known(count);
  layout.places.resize(roles.size() * count);
  for (auto [number, role] : llvm::enumerate(roles)) {
    MutableArrayRef<WeightPlacement> places = MutableArrayRef(layout.places).slice(number * count, count);
    FailureOr<RoleLayout> own = layOut(module, model, role.name, places, layout.derivedWeights);
    if (failed(own))
      return failure();
    placeUnused(*own, model, number, places);
    layout.totals.push_back(own->bytes);
    for (kd::ParameterOp parameter : findParameters(module, role.name))
      layout.ranges[parameter] = own->ranges.lookup(keyOf(parameter));
    for (size_t i = 0; i < count; ++i)
      if (own->placed[i] && !known[i])
        known[i] = &places[i];
  }
  for (size_t i = 0; i < count; ++i)
    for (uint32_t role = 0; role < roles.size(); ++role)
      if (copiesOf(model, i, role) == 0 && known[i])
        layout.places[role * count + i] = *known[i];
  return layout;
}

uint64_t WeightLayout::bytes() const { return *llvm::max_element(totals); }

} // namespace kiln
