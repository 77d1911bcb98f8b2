// SPDX-License-Identifier: Apache-2.0
//
// A kernel's object linked into this process, with the runtime library's own hooks.
#pragma once

#include "compiler/tuner/LinkedObjects.h"
#include "targets/kernel_abi.h"
#include <cstdint>
#include <string>

namespace kiln {

/// The compiled code of a kernel's schedule.
struct KernelCode {
  std::string object;
  std::string symbol;
  int64_t scratchBytes = 0; // per worker
};

class LoadedKernel {
public:
  /// Links the object. Fails on a hook or function that the process does not have.
  static llvm::Expected<LoadedKernel> load(const KernelCode &code, const KernelAbi &abi);

  /// Returns the address of another symbol of the object. Fails if the object has no such symbol.
  llvm::Expected<void *> find(llvm::StringRef symbol) { return linked.lookup(symbol); }

  /// The maximum number of arguments that call() passes.
  static constexpr size_t mostArguments = 48;
  /// Calls the entry; integers and pointers are both passed as 64 bits. Returns the kernel's status: 0 is success.
  int call(llvm::ArrayRef<uint64_t> arguments) const;

private:
  LoadedKernel(LinkedObjects linked, void *entry) : linked(std::move(linked)), entry(entry) {}
  LinkedObjects linked;
  void *entry;
};

} // namespace kiln
