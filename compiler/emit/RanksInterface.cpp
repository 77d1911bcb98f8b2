// SPDX-License-Identifier: Apache-2.0
#include "compiler/emit/RanksInterface.h"

#include "compiler/dialect/KilnDialect.h"
#include "compiler/transforms/CutStages.h"
#include "kiln/training.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/src/model.h"
#include <fmt/format.h>
#include <set>

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

/// Calls `describe` with each state of these that ops of the module read, and the type that it has there.
static void forEachState(ModuleOp module, std::vector<StateInterface> &states,
                         llvm::function_ref<void(StateInterface &, RankedTensorType)> describe) {
  module.walk([&](Operation *op) {
    if (!isa<kd::StateOp, kd::AppendOp>(op))
      return;
    StringRef name = op->getAttrOfType<StringAttr>("name").getValue();
    for (StateInterface &state : states)
      if (state.name == name)
        describe(state, cast<RankedTensorType>(op->getResult(0).getType()));
  });
}

/// What is there of a replica's part of an optimiser's states says how many have one.
static void describeReplicas(ModuleOp module, ModelInterface &model) {
  model.replicas = kd::getNumRanks(module, kd::Group::Replicas);
  if (model.replicas == 1)
    return;
  forEachState(module, model.moments, [](StateInterface &moment, RankedTensorType type) {
    moment.parts = ShapedType::getNumElements(moment.shape) / type.getNumElements();
  });
  model.placeStates();
}

static void splitAmongRanks(ModuleOp module, ModelInterface &model) {
  const int64_t ranks = kd::getNumRanks(module);
  auto shards = module->getAttrOfType<DictionaryAttr>(kd::shardsAttrName);
  if (ranks == model.ranks || !shards)
    return;
  model.ranks = ranks;
  for (WeightInterface &weight : model.weights)
    if (auto shard = shards.getAs<kd::ShardAttr>(weight.name))
      split(weight, shard.getDim(), shard.getSections(), ranks / shard.getGroup(), shard.getGroup());
  for (StateInterface &moment : model.moments) // of "mean:h.{}.fc.weight"
    if (auto shard = shards.getAs<kd::ShardAttr>(StringRef(moment.name).split(':').second))
      split(moment, shard.getDim(), shard.getSections(), ranks / shard.getGroup(), shard.getGroup());
  forEachState(module, model.states,
               [&](StateInterface &state, RankedTensorType type) { splitState(state, type, ranks); });
  model.placeStates();
}

/// Which weights stages with a role read.
static std::set<std::string> findWeights(ModuleOp module, const ModelInterface &model, StringRef role) {
  std::set<std::string> names;
  for (const EntryInterface &entry : model.entries)
    module.lookupSymbol<func::FuncOp>(kd::getRoleName(entry.name, role)).walk([&](kd::ParameterOp parameter) {
      for (StringRef source : parameter.getSources().getAsValueRange<StringAttr>())
        names.insert(source.str());
    });
  return names;
}

/// How many copies ops of the module have of each weight and state that is a layer's.
static llvm::StringMap<int64_t> countCopies(ModuleOp module) {
  llvm::StringMap<int64_t> copies;
  auto count = [&](auto state) { copies[state.getName()] = state.getCopies(); };
  module.walk([&](kd::ParameterOp parameter) {
    for (StringRef source : parameter.getSources().getAsValueRange<StringAttr>())
      copies[source] = parameter.getCopies();
  });
  module.walk([&](kd::StateOp state) { count(state); });
  module.walk([&](kd::AppendOp append) { count(append); });
  module.walk([&](kd::StoreOp store) { count(store); });
  return copies;
}

/// Whether stages that are not the last have a result of the entry, too.
static bool isEverywhere(ModuleOp module, const EntryInterface &entry, StringRef result) {
  auto first = module.lookupSymbol<func::FuncOp>(kd::getRoleName(entry.name, "first"));
  for (unsigned i = 0; i < first.getNumResults(); ++i)
    if (auto name = first.getResultAttrOfType<StringAttr>(i, kd::nameAttrName); name && name == result)
      return true;
  return false;
}

void describeStages(ModuleOp module, ModelInterface &model) {
  const int64_t stages = kd::getNumRanks(module, kd::Group::Stages);
  if (stages == model.stages)
    return;
  model.stages = stages;
  const llvm::StringMap<int64_t> copies = countCopies(module);
  auto isCut = [&](const auto &tensor) {
    auto found = copies.find(tensor.name);
    return found != copies.end() && found->second != tensor.copies;
  };
  auto cut = [&](auto &tensor) { tensor.layers = {tensor.copies /= stages}; }; // of one stack
  for (WeightInterface &weight : model.weights)
    if (isCut(weight)) {
      cut(weight);
      weight.stages = stages;
    }
  for (StateInterface &state : model.states)
    if (isCut(state))
      cut(state);
  for (StateInterface &moment : model.moments)
    if (isCut(moment))
      cut(moment);
  model.placeStates();
  for (EntryInterface &entry : model.entries)
    for (ArgumentInterface &argument : entry.arguments)
      argument.isOfLast = argument.isOutput && !isEverywhere(module, entry, argument.name);
  for (auto [number, role] : llvm::enumerate(kd::getStageRoles(stages))) {
    const std::set<std::string> read = findWeights(module, model, role);
    for (WeightInterface &weight : model.weights)
      weight.absent |= uint32_t(!read.contains(weight.name)) << number;
  }
}

void describeRanks(ModuleOp module, ModelInterface &model) {
  splitAmongRanks(module, model);
  describeReplicas(module, model);
}

/// Whether replicas can share out something of what an entry's optimiser keeps.
static bool keepsStates(const Graph &graph, const Entry &entry) {
  return llvm::any_of(gradient_parameters(graph, entry), [&](int number) {
    return running_rate(graph, number) == 0 && !kept_moments(graph, entry.training, number).empty();
  });
}

std::string checkRanks(const Graph &graph, const LoweringOptions &lowering, llvm::ArrayRef<const Target *> targets) {
  const auto [ranks, replicas, parts, rows, stages, sharesStates] = lowering.ranks;
  auto hasGradients = [](const Entry &entry) { return entry.training.update != Update::none; };
  if (replicas > 1 && llvm::none_of(graph.entries, hasGradients))
    return fmt::format("--replicas {} requires an entry that trains or gives gradients, got none", replicas);
  if (parts > 0 && (!llvm::isPowerOf2_64(parts) || parts % ranks != 0 || !lowering.ordered))
    return fmt::format("--sum-parts requires --ordered and a power of two that {} ranks divide, got {}{}", ranks, parts,
                       lowering.ordered ? "" : " without --ordered");
  if (rows && (ranks == 1 || parts > 0))
    return fmt::format("--sequence-parallel requires two ranks or more, and no --sum-parts, got {} and {}", ranks,
                       parts);
  if (sharesStates && replicas == 1)
    return fmt::format("--shard-optimizer requires two replicas or more, got {}", replicas);
  if (sharesStates && llvm::none_of(graph.entries, [&](const Entry &entry) { return keepsStates(graph, entry); }))
    return "--shard-optimizer requires an entry that trains with an optimiser that keeps states, got none";
  if (parts > 0 && replicas > 1)
    return fmt::format("--sum-parts requires one replica, got {}", replicas);
  for (const Entry &entry : graph.entries)
    if (stages > 1 && entry.training.update == Update::give)
      return fmt::format("{} stages require entries that change weights by their gradients, got \"{}\", which returns "
                         "them",
                         stages, entry.name);
  for (const Target *target : targets)
    if (stages > 1 && target->info().memorySpace != KILN_MEMORY_HOST)
      return fmt::format("{} stages require targets that are CPUs, got {}", stages, target->info().name);
  for (const Target *target : targets)
    if (replicas > 1 && target->info().memorySpace != KILN_MEMORY_HOST)
      return fmt::format("a library for {} replicas requires targets that are CPUs, got {}", replicas,
                         target->info().name);
  return "";
}

} // namespace kiln
