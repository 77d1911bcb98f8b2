// SPDX-License-Identifier: Apache-2.0
//
// Compiles GPU functions, as the tile builder makes them, to PTX. No library is linked and no external tool runs: a
// kernel calls only functions of its module and intrinsics that LLVM's NVPTX backend knows.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace kiln::cuda {

/// A target, with LLVM's names. With `hasDependentLaunch`, kernels may begin before earlier kernels in their stream
/// have completed (programmatic dependent launch, since 9.0); they wait for those before they touch memory that others
/// write.
struct Chip {
  llvm::StringRef name, features;
  bool hasDependentLaunch = false;
};

/// A module with a separate context, so that the kernel that it is built from does not change.
class DeviceModule {
public:
  DeviceModule();
  DeviceModule(const DeviceModule &) = delete;
  DeviceModule &operator=(const DeviceModule &) = delete;

  mlir::ModuleOp get() { return *module; }
  std::string print();
  /// Compiles the module to PTX without changing it.
  llvm::Expected<std::string> compile(const Chip &chip);

private:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace kiln::cuda
