// SPDX-License-Identifier: Apache-2.0
#include "compiler/tuner/TargetsToTune.h"

#include "runtime/src/internal.h"

#include "llvm/ADT/STLExtras.h"
#include <fmt/format.h>

namespace kiln {

static uint32_t bestIsa() {
  const kiln_cpu_t cpu = kiln_cpu_detect();
  return kiln_cpu_best_isa(&cpu);
}

/// The best one that this CPU runs, if any.
static std::vector<std::unique_ptr<Target>> findBestTarget() {
  const uint32_t best = bestIsa();
  std::vector<std::unique_ptr<Target>> found;
  for (const std::string &name : cpuTargetNames()) {
    std::unique_ptr<Target> target = createCpuTarget(name);
    if (target->isa() > best || (!found.empty() && target->isa() <= found.front()->isa()))
      continue;
    found.clear();
    found.push_back(std::move(target));
  }
  return found;
}

std::vector<std::unique_ptr<Target>> findTargets(const std::vector<std::string> &names,
                                                 const std::function<void(const std::string &)> &note) {
  if (names.empty())
    return findBestTarget();
  const uint32_t best = bestIsa();
  std::vector<std::unique_ptr<Target>> targets;
  for (const std::string &name : names) {
    std::unique_ptr<Target> target = createCpuTarget(name);
    if (target->isa() <= best)
      targets.push_back(std::move(target));
    else
      note(fmt::format("leaving out {}: this CPU cannot run it", name));
  }
  return targets;
}

} // namespace kiln
