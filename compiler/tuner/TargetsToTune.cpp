// SPDX-License-Identifier: Apache-2.0
#include "compiler/tuner/TargetsToTune.h"

#include "compiler/tuner/CudaDevice.h"
#include "runtime/src/internal.h"

#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include <fmt/format.h>

namespace kiln {

llvm::Expected<Machine> findMachine(const TargetInfo &target) {
  const llvm::Triple wanted(target.hostTriple), here(llvm::sys::getProcessTriple());
  if (wanted.getArch() != here.getArch() || wanted.getOS() != here.getOS())
    return llvm::createStringError("this machine cannot run it");
  if (target.memorySpace == KILN_MEMORY_DEVICE)
    return findGpu(target.name);
  const kiln_cpu_t cpu = kiln_cpu_detect();
  if (target.features & ~kiln_cpu_features(&cpu))
    return llvm::createStringError("this CPU cannot run it");
  return detectMachine(target.name);
}

std::vector<TargetHere> findTargets(const std::vector<std::string> &names,
                                    const std::function<void(const std::string &)> &note) {
  std::vector<TargetHere> targets;
  for (const Target *target : allTargets()) { // the best first
    if (!names.empty() || target->info().memorySpace != KILN_MEMORY_HOST)
      continue;
    if (llvm::Expected<Machine> machine = findMachine(target->info()))
      return {{target, std::move(*machine)}};
    else
      llvm::consumeError(machine.takeError());
  }
  for (const std::string &name : names) {
    const Target *target = findTarget(name);
    if (llvm::Expected<Machine> machine = findMachine(target->info()))
      targets.push_back({target, std::move(*machine)});
    else
      note(fmt::format("leaving out {}: {}", name, llvm::toString(machine.takeError())));
  }
  return targets;
}

} // namespace kiln
