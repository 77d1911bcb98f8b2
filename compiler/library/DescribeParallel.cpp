// SPDX-License-Identifier: Apache-2.0
#include "compiler/library/DescribeParallel.h"

#include "compiler/dialect/KilnDialect.h"
#include "compiler/dialect/StageRoles.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/src/core/model.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
namespace kd = mlir::kiln;

namespace kiln {

/// Replaces a weight or a state by a rank's shard: one of `parts` shares, rounded up, of each section.
template <class Tensor>
static void split(Tensor &tensor, TensorLayout &layout, int64_t dim, ArrayRef<int64_t> sections, int64_t parts,
                  int64_t group) {
  WeightSlice &slice = layout.slice.emplace(WeightSlice{dim, tensor.shape[dim], {}});
  int64_t first = 0;
  for (int64_t section : sections) {
    const int64_t share = llvm::divideCeil(section, parts);
    slice.sections.push_back({first, share, share, group});
    first += section;
  }
  tensor.shape[dim] = llvm::divideCeil(tensor.shape[dim], parts);
}

/// Replaces a state by the shard that ops of the module have. An axis is either not split or split as one section.
static void splitState(StateInterface &state, TensorLayout &layout, RankedTensorType type, int64_t ranks) {
  for (int64_t dim = 1; dim < type.getRank(); ++dim)
    if (const int64_t extent = state.shape[dim], parts = extent / type.getDimSize(dim); parts > 1)
      split(state, layout, dim, extent, parts, ranks / parts);
}

/// Returns the types that ops of the module read states as, by the states' names.
static llvm::StringMap<RankedTensorType> findStateTypes(ModuleOp module) {
  llvm::StringMap<RankedTensorType> types;
  module.walk([&](Operation *op) {
    if (isa<kd::StateOp, kd::AppendOp>(op))
      types.try_emplace(op->getAttrOfType<StringAttr>("name").getValue(),
                        cast<RankedTensorType>(op->getResult(0).getType()));
  });
  return types;
}

/// Derives the number of optimiser-state shards from the type of a replica's shard.
static void divideAmongReplicas(ModuleOp module, ModelInterface &model) {
  const llvm::StringMap<RankedTensorType> types = findStateTypes(module);
  for (auto [moment, layout] : llvm::zip_equal(model.optimizerStates, model.parallel->optimizerStates)) {
    const auto type = types.find(moment.name);
    if (type == types.end())
      continue;
    layout.parts = ShapedType::getNumElements(moment.shape) / type->second.getNumElements();
    if (layout.parts > 1)
      layout.sharedShape = std::exchange(moment.shape, {type->second.getNumElements()});
  }
}

static void splitAmongRanks(ModuleOp module, ModelInterface &model) {
  auto shards = module->getAttrOfType<DictionaryAttr>(kd::shardsAttrName);
  const int64_t ranks = model.parallel->ranks;
  if (ranks == 1 || !shards)
    return;
  auto splitAs = [&](StringRef weight, auto &tensor, TensorLayout &layout) {
    if (auto shard = shards.getAs<kd::ShardAttr>(weight))
      split(tensor, layout, shard.getDim(), shard.getSections(), ranks / shard.getGroup(), shard.getGroup());
  };
  for (auto [weight, layout] : llvm::zip_equal(model.weights, model.parallel->weights))
    splitAs(weight.name, weight, layout);
  for (auto [moment, layout] : llvm::zip_equal(model.optimizerStates, model.parallel->optimizerStates))
    splitAs(StringRef(moment.name).split(':').second, moment, layout); // name: "mean:h.{}.fc.weight"
  const llvm::StringMap<RankedTensorType> types = findStateTypes(module);
  for (auto [state, layout] : llvm::zip_equal(model.states, model.parallel->states))
    if (auto type = types.find(state.name); type != types.end())
      splitState(state, layout, type->second, ranks);
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
static void cut(std::vector<Tensor> &tensors, std::vector<TensorLayout> &layouts, const llvm::StringMap<Found> &found,
                int64_t stages) {
  for (auto [tensor, layout] : llvm::zip_equal(tensors, layouts)) {
    const int64_t copies = found.lookup(tensor.name).copies;
    if (copies == 0 || copies == tensor.copies)
      continue;
    layout.allCopies = tensor.copies;
    tensor.copies = llvm::divideCeil(tensor.copies, stages);
    tensor.layers = {tensor.copies};
  }
}

/// A role lacks the tensors that it does not name. A tensor that no role names belongs to the last stage.
template <class Tensor>
static void leaveOut(const std::vector<Tensor> &tensors, std::vector<TensorLayout> &layouts,
                     const llvm::StringMap<Found> &found, size_t roles) {
  const uint32_t all = (1U << std::min<size_t>(roles, KILN_STAGE_ROLE_MIDDLE + 1)) - 1;
  for (auto [tensor, layout] : llvm::zip_equal(tensors, layouts)) {
    const uint32_t named = found.lookup(tensor.name).roles;
    layout.absent = all & ~(named ? named : 1U << KILN_STAGE_ROLE_LAST);
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

static void cutInStages(ModuleOp module, ModelInterface &model) {
  ParallelLayout &layout = *model.parallel;
  if (layout.stages == 1)
    return;
  layout.roles.clear();
  for (const kd::StageRole &role : kd::getStageRoles(module))
    layout.roles.push_back(role.stage);
  const FoundTensors found = findTensors(module, model);
  cut(model.weights, layout.weights, found.weights, layout.stages);
  cut(model.states, layout.states, found.states, layout.stages);
  cut(model.optimizerStates, layout.optimizerStates, found.states, layout.stages);
  leaveOut(model.weights, layout.weights, found.weights, layout.roles.size());
  leaveOut(model.optimizerStates, layout.optimizerStates, found.states, layout.roles.size());
  for (const EntryInterface &entry : model.entries)
    for (const ArgumentInterface &argument : entry.arguments)
      if (argument.isOutput && !isEverywhere(module, entry, argument.name))
        layout.resultsOfLast.insert({entry.name, argument.name});
}

void describeParallel(ModuleOp module, ModelInterface &model) {
  ParallelLayout layout;
  layout.ranks = kd::getNumRanks(module);
  layout.replicas = kd::getNumRanks(module, kd::Group::Replicas);
  layout.stages = kd::getNumRanks(module, kd::Group::Stages);
  if (model.parallel || layout.ranks * layout.replicas * layout.stages == 1)
    return;
  layout.weights.resize(model.weights.size());
  layout.states.resize(model.states.size());
  layout.optimizerStates.resize(model.optimizerStates.size());
  model.parallel = std::move(layout);
  splitAmongRanks(module, model);
  if (model.parallel->replicas > 1)
    divideAmongReplicas(module, model);
  cutInStages(module, model);
  model.placeStates();
}

} // namespace kiln
