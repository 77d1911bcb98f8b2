// SPDX-License-Identifier: Apache-2.0
#include "compiler/tuner/TargetsToTune.h"

#include "runtime/src/internal.h"

#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include <fmt/format.h>

namespace kiln {

bool runsHere(const TargetInfo &target) {
  if (llvm::Triple(target.hostTriple).getArch() != llvm::Triple(llvm::sys::getProcessTriple()).getArch())
    return false;
  if (target.memorySpace != KILN_MEMORY_HOST)
    return false;
  const kiln_cpu_t cpu = kiln_cpu_detect();
  return (target.features & ~kiln_cpu_features(&cpu)) == 0;
}

std::vector<const Target *> findTargets(const std::vector<std::string> &names,
                                        const std::function<void(const std::string &)> &note) {
  if (names.empty()) {
    for (const Target *target : allTargets()) // the best first
      if (runsHere(target->info()))
        return {target};
    return {};
  }
  std::vector<const Target *> targets;
  for (const std::string &name : names) {
    const Target *target = findTarget(name);
    if (runsHere(target->info()))
      targets.push_back(target);
    else
      note(fmt::format("leaving out {}: this CPU cannot run it", name));
  }
  return targets;
}

} // namespace kiln
