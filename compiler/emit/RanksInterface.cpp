// SPDX-License-Identifier: Apache-2.0
#include "compiler/emit/RanksInterface.h"

#include "compiler/dialect/KilnDialect.h"
#include "runtime/src/model.h"
#include <fmt/format.h>

using namespace mlir;
namespace kd = mlir::kiln;

namespace kiln {

/// A weight, or what an optimiser keeps of it, becomes a rank's share of each section of the tensor: one of `parts`,
/// rounded up.
template <class Tensor>
static void split(Tensor &tensor, int64_t dim, ArrayRef<int64_t> sections, int64_t parts, int64_t group) {
  WeightSlice &slice = tensor.slice.emplace(WeightSlice{dim, tensor.shape[dim], {}});
  int64_t first = 0;
  for (int64_t section : sections) {
    const int64_t share = llvm::divideCeil(section, parts);
    slice.sections.push_back({first, share, share, group});
    first += section;
  }
  tensor.shape[dim] = llvm::divideCeil(tensor.shape[dim], parts);
}

/// A state becomes what ops of the module have of it. Its axes stay whole or are split as a whole.
static void splitState(StateInterface &state, RankedTensorType type, int64_t ranks) {
  for (int64_t dim = 1; dim < type.getRank(); ++dim)
    if (const int64_t extent = state.shape[dim], parts = extent / type.getDimSize(dim); parts > 1)
      split(state, dim, extent, parts, ranks / parts);
}

void describeRanks(ModuleOp module, ModelInterface &model) {
  const int64_t ranks = kd::getNumRanks(module);
  auto shards = module->getAttrOfType<DictionaryAttr>(kd::shardsAttrName);
  model.replicas = kd::getNumRanks(module, kd::Group::Replicas);
  if (ranks == model.ranks || !shards)
    return;
  model.ranks = ranks;
  for (WeightInterface &weight : model.weights)
    if (auto shard = shards.getAs<kd::ShardAttr>(weight.name))
      split(weight, shard.getDim(), shard.getSections(), ranks / shard.getGroup(), shard.getGroup());
  for (StateInterface &moment : model.moments) // of "mean:h.{}.fc.weight"
    if (auto shard = shards.getAs<kd::ShardAttr>(StringRef(moment.name).split(':').second))
      split(moment, shard.getDim(), shard.getSections(), ranks / shard.getGroup(), shard.getGroup());
  module.walk([&](Operation *op) {
    if (!isa<kd::StateOp, kd::AppendOp>(op))
      return;
    StringRef name = op->getAttrOfType<StringAttr>("name").getValue();
    for (StateInterface &state : model.states)
      if (state.name == name)
        splitState(state, cast<RankedTensorType>(op->getResult(0).getType()), ranks);
  });
  model.placeStates();
}

std::string checkRanks(const Graph &graph, const LoweringOptions &lowering, llvm::ArrayRef<const Target *> targets) {
  const auto [ranks, replicas, parts, rows] = lowering.ranks;
  auto hasGradients = [](const Entry &entry) { return entry.training.update != Update::none; };
  if (replicas > 1 && llvm::none_of(graph.entries, hasGradients))
    return fmt::format("--replicas {} requires an entry that trains or gives gradients, got none", replicas);
  if (parts > 0 && (!llvm::isPowerOf2_64(parts) || parts % ranks != 0 || !lowering.ordered))
    return fmt::format("--sum-parts requires --ordered and a power of two that {} ranks divide, got {}{}", ranks, parts,
                       lowering.ordered ? "" : " without --ordered");
  if (rows && (ranks == 1 || parts > 0))
    return fmt::format("--sequence-parallel requires two ranks or more, and no --sum-parts, got {} and {}", ranks,
                       parts);
  for (const Entry &entry : graph.entries)
    if (parts > 0 && hasGradients(entry))
      return fmt::format("--sum-parts requires entries without gradients, got \"{}\"", entry.name);
  for (const Target *target : targets)
    if (replicas > 1 && target->info().memorySpace != KILN_MEMORY_HOST)
      return fmt::format("a library for {} replicas requires targets that are CPUs, got {}", replicas,
                         target->info().name);
  return "";
}

} // namespace kiln
