// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/Budgets.h"

#include <fmt/format.h>

namespace kiln {

std::string checkBudgets(const CompileReport &report, const CompileOptions &options) {
  if (options.maxTextBytes && report.textBytes > *options.maxTextBytes)
    return fmt::format("the code of \"{}\" exceeds its budget: {} bytes, at most {} allowed", report.model.name,
                       report.textBytes, *options.maxTextBytes);
  for (size_t i = 0; options.maxArenaBytes && i < report.model.entries.size(); ++i) {
    const ArenaBytes arena = arenaBytes(report.variants, i);
    if (arena.fixed + arena.perWorker > *options.maxArenaBytes)
      return fmt::format("the arena of entry \"{}\" exceeds its budget: {} bytes with one worker, at most {} allowed",
                         report.model.entries[i].name, arena.fixed + arena.perWorker, *options.maxArenaBytes);
  }
  return "";
}

} // namespace kiln
