// SPDX-License-Identifier: Apache-2.0
#include "targets/registry.h"

#include "targets/cpu/Cpu.h"
#include "targets/cuda/Cuda.h"

namespace kiln {

llvm::ArrayRef<const Target *> allTargets() {
  static const std::vector<std::unique_ptr<Target>> owned = [] {
    std::vector<std::unique_ptr<Target>> all = createCpuTargets();
    for (std::unique_ptr<Target> &target : createCudaTargets())
      all.push_back(std::move(target));
    return all;
  }();
  static const std::vector<const Target *> targets = [] {
    std::vector<const Target *> list;
    for (const std::unique_ptr<Target> &target : owned)
      list.push_back(target.get());
    return list;
  }();
  return targets;
}

const Target *findTarget(llvm::StringRef name) {
  for (const Target *target : allTargets())
    if (target->name() == name)
      return target;
  return nullptr;
}

std::vector<std::string> targetNames() {
  std::vector<std::string> names;
  for (const Target *target : allTargets())
    names.push_back(target->info().name);
  return names;
}

std::vector<std::string> defaultTargetNames() {
  std::vector<std::string> names;
  for (const Target *target : allTargets())
    if (target->info().isDefault)
      names.push_back(target->info().name);
  return names;
}

llvm::StringRef backendOfFolder(llvm::StringRef folder) {
  for (const Target *target : allTargets()) {
    llvm::StringRef name = target->info().backend;
    if (name.consume_front("kiln_") && name.consume_back("_backend") && name == folder)
      return target->info().backend;
  }
  return "";
}

} // namespace kiln
