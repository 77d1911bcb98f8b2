// SPDX-License-Identifier: Apache-2.0
#include "compiler/library/RanksInterface.h"

#include "compiler/dialect/KilnDialect.h"
#include "compiler/parallel/CutStages.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/src/core/model.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
namespace kd = mlir::kiln;

namespace kiln {

/// Replaces a weight, or its optimiser state, by a rank's shard: one of `parts` shares, rounded up, of each section.
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

/// Replaces a state by the shard that ops of the module have. An axis is either not split or split as one section.
static void splitState(StateInterface &state, RankedTensorType type, int64_t ranks) {
  for (int64_t dim = 1; dim < type.getRank(); ++dim)
    if (const int64_t extent = state.shape[dim], parts = extent / type.getDimSize(dim); parts > 1)
      split(state, dim, extent, parts, ranks / parts);
}

/// Calls `describe` for each of these states that ops of the module read, with its type in the module.
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

/// Derives the number of optimiser-state shards from the type of a replica's shard.
static void describeReplicas(ModuleOp module, ModelInterface &model) {
  model.replicas = kd::getNumRanks(module, kd::Group::Replicas);
  if (model.replicas == 1)
    return;
  forEachState(module, model.optimizerStates, [](StateInterface &moment, RankedTensorType type) {
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
  for (StateInterface &moment : model.optimizerStates) // name: "mean:h.{}.fc.weight"
    if (auto shard = shards.getAs<kd::ShardAttr>(StringRef(moment.name).split(':').second))
      split(moment, shard.getDim(), shard.getSections(), ranks / shard.getGroup(), shard.getGroup());
  forEachState(module, model.states,
               [&](StateInterface &state, RankedTensorType type) { splitState(state, type, ranks); });
  model.placeStates();
}

namespace {
/// The use of a weight or a state by the functions of an entry, one for each role.
struct Found {
  int64_t copies = 0; // in one of the functions
  uint32_t roles = 0; // a bit for each role that names it; all stages between the first and the last share a bit
};
struct FoundTensors {
  llvm::StringMap<Found> weights, states;
};
} // namespace

static void add(llvm::StringMap<Found> &found, StringRef name, int64_t copies, uint32_t role) {
  Found &here = found[name];
  here.copies = copies;
  here.roles |= 1U << std::min<uint32_t>(role, KILN_STAGE_ROLE_MIDDLE);
}

static FoundTensors findTensors(ModuleOp module, const ModelInterface &model) {
  FoundTensors found;
  for (auto [number, role] : llvm::enumerate(kd::getStageRoles(module)))
    for (const EntryInterface &entry : model.entries)
      module.lookupSymbol<func::FuncOp>(kd::getStageRoleName(entry.name, role.name))
          .walk([&, role = static_cast<uint32_t>(number)](Operation *op) {
            llvm::TypeSwitch<Operation *>(op)
                .Case([&](kd::ParameterOp parameter) {
                  for (StringRef source : parameter.getSources().getAsValueRange<StringAttr>())
                    add(found.weights, source, parameter.getCopies(), role);
                })
                .Case<kd::StateOp, kd::AppendOp, kd::StoreOp>(
                    [&](auto state) { add(found.states, state.getName(), state.getCopies(), role); });
          });
  return found;
}

/// Tensors with fewer copies in the module belong to a stack; each stage has some of the layers.
template <class Tensor>
static void cut(std::vector<Tensor> &tensors, const llvm::StringMap<Found> &found, int64_t stages) {
  for (Tensor &tensor : tensors) {
    const int64_t copies = found.lookup(tensor.name).copies;
    if (copies == 0 || copies == tensor.copies)
      continue;
    tensor.allCopies = tensor.copies;
    tensor.copies = llvm::divideCeil(tensor.copies, stages);
    tensor.layers = {tensor.copies};
  }
}

/// A role lacks the tensors that it does not name. A tensor that no role names belongs to the last stage.
template <class Tensor>
static void leaveOut(std::vector<Tensor> &tensors, const llvm::StringMap<Found> &found, size_t roles) {
  const uint32_t all = (1U << std::min<size_t>(roles, KILN_STAGE_ROLE_MIDDLE + 1)) - 1;
  for (Tensor &tensor : tensors) {
    const uint32_t named = found.lookup(tensor.name).roles;
    tensor.absent = all & ~(named ? named : 1U << KILN_STAGE_ROLE_LAST);
  }
}

/// Whether stages other than the last have a result of the entry too.
static bool isEverywhere(ModuleOp module, const EntryInterface &entry, StringRef result) {
  auto first = module.lookupSymbol<func::FuncOp>(kd::getStageRoleName(entry.name, "first"));
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
  model.roles.clear();
  for (const kd::StageRole &role : kd::getStageRoles(module))
    model.roles.push_back(role.stage);
  const FoundTensors found = findTensors(module, model);
  cut(model.weights, found.weights, stages);
  cut(model.states, found.states, stages);
  cut(model.optimizerStates, found.states, stages);
  leaveOut(model.weights, found.weights, model.roles.size());
  leaveOut(model.optimizerStates, found.states, model.roles.size());
  model.placeStates();
  for (EntryInterface &entry : model.entries)
    for (ArgumentInterface &argument : entry.arguments)
      argument.isOfLast = argument.isOutput && !isEverywhere(module, entry, argument.name);
}

void describeRanks(ModuleOp module, ModelInterface &model) {
  splitAmongRanks(module, model);
  describeReplicas(module, model);
}

} // namespace kiln
