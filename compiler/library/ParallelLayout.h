// SPDX-License-Identifier: Apache-2.0
//
// How several processes that call entries together divide the tensors of a model. A ModelInterface describes the
// tensors of one process; a ParallelLayout says which part of the whole model these are. The weight file, the
// descriptor and the manifest contain both.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kiln {

struct ModelInterface;
struct StateInterface;
struct WeightInterface;

/// A range of elements along an axis of a tensor: rank r has `extent` elements that begin at first + r / group * step.
struct WeightSection {
  int64_t first = 0, extent = 0, step = 0, group = 1;
};

/// A rank's shard of a tensor: consecutive sections along a dimension that has `extent` elements in the file.
struct WeightSlice {
  int64_t dim = 0, extent = 0;
  std::vector<WeightSection> sections;
};

/// The part of a weight or a state that a process has.
struct TensorLayout {
  std::optional<WeightSlice> slice = std::nullopt; // the rank's shard; none: each rank has the whole tensor
  /// With pipeline stages, the copies of all stages together, of which a stage has at most the tensor's `copies`. 0:
  /// each stage has all copies.
  int64_t allCopies = 0;
  uint32_t absent = 0; // a bit for each stage role that has no copy, as for KILN_WEIGHT_ABSENT
  /// The number of shards of an optimiser state, of which each replica has one, flattened.
  int64_t parts = 1;
  std::vector<int64_t> sharedShape;   // with several parts, the shape of all of them together
  std::vector<uint64_t> offsets = {}; // of a state in the arenas, one per stage role
};

struct ParallelLayout {
  int64_t ranks = 1;    // tensor-parallel ranks
  int64_t replicas = 1; // data-parallel replicas of a model that is trained
  int64_t stages = 1;   // pipeline stages, each with some of the layers
  /// For each role of a pipeline stage, the first stage with it (compiler/dialect/StageRoles.h).
  std::vector<int64_t> roles = {0};
  std::vector<TensorLayout> weights, states, optimizerStates;  // in the order of the interface's tensors
  std::set<std::pair<std::string, std::string>> resultsOfLast; // (entry, result): only the last stage writes it

  /// Whether a process has only some of the weights.
  bool dividesWeights() const { return ranks > 1 || stages > 1; }
  /// Whether the optimiser state is sharded among the replicas (ZeRO-1).
  bool sharesStates() const;
  /// Whether a process has only a part of the weights or of the optimiser state.
  bool dividesModel() const { return dividesWeights() || sharesStates(); }
  /// Returns the role of a pipeline stage.
  uint32_t roleOf(int64_t stage) const;
  /// Returns how many copies of a tensor a stage with the role has; `copies` are those of the interface's tensor.
  int64_t copiesOf(const TensorLayout &tensor, int64_t copies, uint32_t role) const;
};

/// Places the optimiser state of each role after the model's states, which have the same places on all stages, and
/// records all offsets in the layout. The model must have one.
void placeStatesOfRoles(ModelInterface &model);

/// Returns where a state of the model begins in the arenas of a stage with the role.
uint64_t offsetOf(const ModelInterface &model, const StateInterface &state, uint32_t role);

/// Returns the weights as the weight file has them: the tensors of all processes together.
std::vector<WeightInterface> fileWeights(const ModelInterface &model);

} // namespace kiln
