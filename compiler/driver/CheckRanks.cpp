// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/CheckRanks.h"

#include "kiln/training.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <fmt/format.h>

namespace kiln {

/// Whether an entry has optimiser state that can be sharded among replicas.
static bool keepsStates(const Graph &graph, const Entry &entry) {
  return llvm::any_of(gradient_parameters(graph, entry), [&](int number) {
    return running_rate(graph, number) == 0 && !optimizer_states(graph, entry.training, number).empty();
  });
}

std::string checkRanks(const Graph &graph, const LoweringOptions &lowering) {
  const auto [ranks, replicas, parts, rows, stages, sharesStates, sumsHalf] = lowering.ranks;
  if (std::string wrong = checkBuilt(lowering.ranks); !wrong.empty())
    return wrong;
  auto hasGradients = [](const Entry &entry) { return entry.training.update != Update::none; };
  if (replicas > 1 && llvm::none_of(graph.entries, hasGradients))
    return fmt::format("--replicas {}: no entry with gradients; expected one that trains or gives gradients, got none",
                       replicas);
  if (parts > 0 && (!llvm::isPowerOf2_64(parts) || parts % ranks != 0 || !lowering.batchInvariant))
    return fmt::format("--reduction-parts: wrong number, or no --batch-invariant; expected --batch-invariant and a "
                       "power of two that {} "
                       "ranks divide, got {}{}",
                       ranks, parts, lowering.batchInvariant ? "" : " without --batch-invariant");
  if (rows && (ranks == 1 || parts > 0))
    return fmt::format(
        "--sequence-parallel: too few ranks, or --reduction-parts given; expected two ranks or more and no "
        "--reduction-parts, got {} and {}",
        ranks, parts);
  if (sharesStates && replicas == 1)
    return fmt::format("--shard-optimizer: too few replicas; expected two or more, got {}", replicas);
  if (sharesStates && llvm::none_of(graph.entries, [&](const Entry &entry) { return keepsStates(graph, entry); }))
    return "--shard-optimizer: no optimiser state; expected an entry that trains with an optimiser with state, got "
           "none";
  if (parts > 0 && (parts % replicas != 0 || sharesStates))
    return fmt::format("--reduction-parts {}: wrong number of replicas, or --shard-optimizer given; expected one that "
                       "divides it and no --shard-optimizer, got {}{}",
                       parts, replicas, sharesStates ? " with it" : "");
  for (const Entry &entry : graph.entries)
    if (stages > 1 && entry.training.update == Update::give)
      return fmt::format(
          "--stages {}: entry returns gradients; expected entries that change weights by them, got \"{}\"", stages,
          entry.name);
  return "";
}

} // namespace kiln
