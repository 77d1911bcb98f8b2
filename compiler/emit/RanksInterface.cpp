// SPDX-License-Identifier: Apache-2.0
#include "compiler/emit/RanksInterface.h"

#include "compiler/dialect/KilnDialect.h"
#include "runtime/src/model.h"
#include <fmt/format.h>

using namespace mlir;
namespace kd = mlir::kiln;

namespace kiln {

/// Of each section of the tensor a slice.
static std::vector<WeightInterface> slicesOf(const WeightInterface &weight, kd::ShardAttr shard, int64_t ranks) {
  std::vector<WeightInterface> slices;
  int64_t first = 0;
  for (int64_t section : shard.getSections()) {
    WeightInterface &slice = slices.emplace_back(weight);
    slice.slice = {shard.getDim(), weight.shape[shard.getDim()], first, section / ranks};
    slice.shape[shard.getDim()] = section / ranks;
    first += section;
  }
  return slices;
}

/// What an optimiser keeps of a weight, "mean:h.{}.fc.weight", is split as that is.
static void splitState(StateInterface &state, DictionaryAttr shards, int64_t ranks) {
  auto shard = shards.getAs<kd::ShardAttr>(StringRef(state.name).split(':').second);
  if (shard)
    state.shape[shard.getDim()] /= ranks;
}

void describeRanks(ModuleOp module, ModelInterface &model) {
  const int64_t ranks = kd::getNumRanks(module);
  auto shards = module->getAttrOfType<DictionaryAttr>(kd::shardsAttrName);
  model.replicas = kd::getNumRanks(module, kd::Group::Replicas);
  if (ranks == model.ranks || !shards)
    return;
  model.ranks = ranks;
  std::vector<WeightInterface> weights;
  for (const WeightInterface &weight : model.weights)
    if (auto shard = shards.getAs<kd::ShardAttr>(weight.name))
      llvm::append_range(weights, slicesOf(weight, shard, ranks));
    else
      weights.push_back(weight);
  model.weights = std::move(weights);
  for (StateInterface &moment : model.moments)
    splitState(moment, shards, ranks);
  module.walk([&](Operation *op) {
    if (!isa<kd::StateOp, kd::AppendOp>(op))
      return;
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    StringRef name = op->getAttrOfType<StringAttr>("name").getValue();
    for (StateInterface &state : model.states)
      if (state.name == name)
        llvm::copy(type.getShape().drop_front(), state.shape.begin() + 1);
  });
  model.placeStates();
}

std::string checkRanks(const Graph &graph, const LoweringOptions &lowering, llvm::ArrayRef<const Target *> targets) {
  const auto [ranks, replicas, parts] = lowering.ranks;
  auto hasGradients = [](const Entry &entry) { return entry.training.update != Update::none; };
  if (replicas > 1 && llvm::none_of(graph.entries, hasGradients))
    return fmt::format("--replicas {} requires an entry that trains or gives gradients, got none", replicas);
  if (parts > 0 && (!llvm::isPowerOf2_64(parts) || parts % ranks != 0 || !lowering.ordered))
    return fmt::format("--sum-parts requires --ordered and a power of two that {} ranks divide, got {}{}", ranks, parts,
                       lowering.ordered ? "" : " without --ordered");
  for (const Entry &entry : graph.entries)
    if (parts > 0 && hasGradients(entry))
      return fmt::format("--sum-parts requires entries without gradients, got \"{}\"", entry.name);
  for (const Target *target : targets)
    if (ranks * replicas > 1 && target->info().memorySpace != KILN_MEMORY_HOST)
      return fmt::format("a library for {} ranks requires targets that are CPUs, got {}", ranks * replicas,
                         target->info().name);
  return "";
}

} // namespace kiln
