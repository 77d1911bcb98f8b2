// SPDX-License-Identifier: Apache-2.0
//
// The object of a kernel linked into this process, beside the run time's own hooks.
#pragma once

#include "compiler/tuner/LinkedObjects.h"
#include "targets/kernel_abi.h"
#include <cstdint>
#include <string>

namespace kiln {

/// What a kernel's schedule was compiled to.
struct KernelCode {
  std::string object;
  std::string symbol;
  int64_t scratchBytes = 0; // of one worker
};

class LoadedKernel {
public:
  /// Links the object. Fails on a hook or function that the process does not have.
  static llvm::Expected<LoadedKernel> load(const KernelCode &code, const KernelAbi &abi);

  /// The address of another symbol of the object. Fails if it has none of that name.
  llvm::Expected<void *> find(llvm::StringRef symbol) { return linked.lookup(symbol); }

  /// The most arguments that call() passes.
  static constexpr size_t mostArguments = 48;
  /// Calls the entry; integers and pointers both travel as 64 bits. The result is the kernel's: 0 is success.
  int call(llvm::ArrayRef<uint64_t> arguments) const;

private:
  LoadedKernel(LinkedObjects linked, void *entry) : linked(std::move(linked)), entry(entry) {}
  LinkedObjects linked;
  void *entry;
};

} // namespace kiln
