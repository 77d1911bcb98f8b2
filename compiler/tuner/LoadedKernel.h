// SPDX-License-Identifier: Apache-2.0
//
// The object of a kernel linked into this process, beside the run time's own hooks.
#pragma once

#include "compiler/tuner/LinkedObjects.h"
#include "targets/kernel_abi.h"
#include <cstdint>

namespace kiln {

class LoadedKernel {
public:
  /// Links the object; `symbol` is its entry. Fails on a hook or function that the process does not have.
  static llvm::Expected<LoadedKernel> load(llvm::StringRef object, llvm::StringRef symbol, const KernelAbi &abi);

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
