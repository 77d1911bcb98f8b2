// SPDX-License-Identifier: Apache-2.0
//
// Functions of a GPU, as the tile builder makes them, to PTX. Nothing is linked to them and nothing else is run: what a
// kernel calls is in its module, or an intrinsic that LLVM's code generator for PTX knows.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace kiln::cuda {

/// LLVM's names. On one that `launchesEarly`, kernels may begin before those in front of them in their stream are done
/// (programmatic dependent launch, since 9.0); they wait for those before they touch memory that others write.
struct Chip {
  llvm::StringRef name, features;
  bool launchesEarly = false;
};

/// A module in a context of its own: what it is built from stays as it is.
class DeviceModule {
public:
  DeviceModule();
  DeviceModule(const DeviceModule &) = delete;
  DeviceModule &operator=(const DeviceModule &) = delete;

  mlir::ModuleOp get() { return *module; }
  std::string print();
  /// The module, which stays as it is, as PTX.
  llvm::Expected<std::string> compile(const Chip &chip);

private:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace kiln::cuda
