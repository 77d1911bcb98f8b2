// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/Budgets.h"

#include <fmt/format.h>

namespace kiln {

std::string checkBudgets(const ModelInterface &model, const std::vector<Variant> &variants, uint64_t textBytes,
                         const CompileOptions &options) {
  if (options.maxTextBytes && textBytes > *options.maxTextBytes)
    return fmt::format("the code of \"{}\" exceeds its budget: {} bytes, at most {} allowed", model.name, textBytes,
                       *options.maxTextBytes);
  for (size_t i = 0; options.maxArenaBytes && i < model.entries.size(); ++i) {
    const ArenaBytes arena = arenaBytes(variants, i);
    if (arena.fixed + arena.perWorker > *options.maxArenaBytes)
      return fmt::format("the arena of entry \"{}\" exceeds its budget: {} bytes with one worker, at most {} allowed",
                         model.entries[i].name, arena.fixed + arena.perWorker, *options.maxArenaBytes);
  }
  return "";
}

} // namespace kiln
