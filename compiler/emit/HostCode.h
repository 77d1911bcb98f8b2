// SPDX-License-Identifier: Apache-2.0
//
// The host function of an entry: loads the extents, calls kernels by their calling convention, loops over layers and
// time steps. Written in the LLVM dialect.
#pragma once

#include "compiler/emit/ConstantPool.h"
#include "compiler/emit/RowVariants.h"
#include "compiler/emit/WeightLayout.h"
#include "compiler/transforms/PlanMemory.h"
#include "targets/target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

namespace kiln {

/// A kernel as host code sees it.
struct KernelReference {
  std::string symbol; // of its object code
  const KernelAbi *abi = nullptr;
};

/// What the host function of an entry needs to know.
struct HostCodeInput {
  const EntryInterface &entry;
  const ModelInterface &model;
  const WeightLayout &weights;
  const mlir::kiln::MemoryPlan &plan;
  llvm::StringRef symbol;                          // of the host function
  const llvm::StringMap<KernelReference> &kernels; // by kernel function
  const RowVariants &variants;
  const TargetInfo &target;
  ConstantPool &constants; // gets those of a device
  uint32_t role = 0;       // of a stage, KILN_ROLE_
};

/// Appends `int SYMBOL(const kiln_frame_t *frame)` for `entry` (a planned entry function) to `host`, a module of the
/// LLVM dialect.
mlir::LogicalResult emitHostCode(mlir::func::FuncOp entry, const HostCodeInput &input, mlir::ModuleOp host);

} // namespace kiln
