// SPDX-License-Identifier: Apache-2.0
#include "targets/registry.h"

#include "compiler/object/ThisMachine.h"
#include "targets/cpu/Cpu.h"
#include "targets/cuda/Cuda.h"
#include "llvm/ADT/STLExtras.h"

namespace kiln {

/// Returns the targets, and the forms of GPU targets for all hosts.
static llvm::ArrayRef<std::unique_ptr<Target>> allForms() {
  static const std::vector<std::unique_ptr<Target>> owned = [] {
    std::vector<std::unique_ptr<Target>> all = createCpuTargets();
    for (std::unique_ptr<Target> &target : createCudaTargets())
      all.push_back(std::move(target));
    return all;
  }();
  return owned;
}

llvm::ArrayRef<const Target *> allTargets() {
  static const std::vector<const Target *> targets = [] {
    std::vector<const Target *> list;
    for (const std::unique_ptr<Target> &form : allForms()) {
      const auto same = llvm::find_if(list, [&](const Target *target) { return target->name() == form->name(); });
      if (same == list.end())
        list.push_back(form.get());
      else if (isForThisMachine(form->info().hostTriple))
        *same = form.get();
    }
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

const Target *findTarget(llvm::StringRef name, llvm::StringRef hostTriple) {
  for (const std::unique_ptr<Target> &form : allForms())
    if (form->name() == name && form->info().hostTriple == hostTriple)
      return form.get();
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
    if (target->info().isDefault && isForThisMachine(target->info().hostTriple))
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
