// SPDX-License-Identifier: Apache-2.0
#include "compiler/library/ParallelLayout.h"

#include "compiler/library/Interface.h"
#include "runtime/src/core/model.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>

namespace kiln {

bool ParallelLayout::sharesStates() const {
  return llvm::any_of(optimizerStates, [](const TensorLayout &moment) { return moment.parts > 1; });
}

uint32_t ParallelLayout::roleOf(int64_t stage) const {
  if (stage + 1 == stages)
    return stages == 1 ? 0 : KILN_STAGE_ROLE_LAST;
  uint32_t role = KILN_STAGE_ROLE_FIRST;
  for (uint32_t next = KILN_STAGE_ROLE_MIDDLE; next < roles.size() && roles[next] <= stage; ++next)
    role = next;
  return role;
}

int64_t ParallelLayout::copiesOf(const TensorLayout &tensor, int64_t copies, uint32_t role) const {
  if (tensor.absent >> std::min<uint32_t>(role, KILN_STAGE_ROLE_MIDDLE) & 1)
    return 0;
  return tensor.allCopies ? kiln_stage_layers(tensor.allCopies, stages, roles[role]) : copies;
}

void placeStatesOfRoles(ModelInterface &model) {
  ParallelLayout &layout = *model.parallel;
  const size_t roles = layout.roles.size();
  for (auto [state, own] : llvm::zip_equal(model.states, layout.states))
    own.offsets.assign(roles, state.offset);
  for (TensorLayout &own : layout.optimizerStates)
    own.offsets.clear();
  model.trainingBytes = model.stateBytes;
  for (uint32_t role = 0; role < roles && !model.optimizerStates.empty(); ++role) {
    uint64_t bytes = model.stateBytes + KILN_MARK_BYTES;
    for (auto [moment, own] : llvm::zip_equal(model.optimizerStates, layout.optimizerStates)) {
      own.offsets.push_back(bytes);
      bytes += layout.copiesOf(own, moment.copies, role) * moment.stride;
    }
    model.trainingBytes = std::max(model.trainingBytes, bytes);
  }
}

uint64_t offsetOf(const ModelInterface &model, const StateInterface &state, uint32_t role) {
  for (size_t i = 0; model.parallel && i < model.optimizerStates.size(); ++i)
    if (&model.optimizerStates[i] == &state)
      return model.parallel->optimizerStates[i].offsets[role];
  return state.offset;
}

std::vector<WeightInterface> fileWeights(const ModelInterface &model) {
  std::vector<WeightInterface> weights = model.weights;
  if (!model.parallel)
    return weights;
  for (auto [weight, own] : llvm::zip_equal(weights, model.parallel->weights)) {
    if (own.slice)
      weight.shape[own.slice->dim] = own.slice->extent;
    if (own.allCopies)
      weight.copies = own.allCopies;
  }
  return weights;
}

} // namespace kiln
