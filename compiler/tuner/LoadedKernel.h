// SPDX-License-Identifier: Apache-2.0
//
// The object of a kernel linked into this process, beside the run time's own hooks. It is for a child process: what is
// loaded may crash or never return.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <memory>

namespace kiln {

class LoadedKernel {
public:
  /// Links the object; `symbol` is its entry. Fails on a hook or function that the process does not have.
  static llvm::Expected<LoadedKernel> load(llvm::StringRef object, llvm::StringRef symbol);
  LoadedKernel(LoadedKernel &&);
  ~LoadedKernel();

  /// The most arguments that call() passes.
  static constexpr size_t mostArguments = 48;
  /// Calls the entry; integers and pointers both travel as 64 bits. The result is the kernel's: 0 is success.
  int call(llvm::ArrayRef<uint64_t> arguments) const;

private:
  struct Linked;
  explicit LoadedKernel(std::unique_ptr<Linked> linked);
  std::unique_ptr<Linked> linked;
};

} // namespace kiln
