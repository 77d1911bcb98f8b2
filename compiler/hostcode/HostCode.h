// SPDX-License-Identifier: Apache-2.0
//
// Emits the entry-point glue, the host function of an entry: it loads the extents, calls kernels by their calling
// convention, and loops over layers and time steps. It is written in the LLVM dialect.
#pragma once

#include "compiler/hostcode/ConstantPool.h"
#include "compiler/hostcode/WeightLayout.h"
#include "compiler/library/ShapeVariants.h"
#include "compiler/transforms/PlanMemory.h"
#include "targets/target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

namespace kiln {

/// A kernel as the glue sees it.
struct KernelReference {
  std::string symbol; // symbol of its object code
  const KernelAbi *abi = nullptr;
};

/// The inputs for the host function of an entry.
struct HostCodeInput {
  const EntryInterface &entry;
  const ModelInterface &model;
  const WeightLayout &weights;
  const mlir::kiln::MemoryPlan &plan;
  llvm::StringRef symbol;                          // symbol of the host function
  const llvm::StringMap<KernelReference> &kernels; // keyed by the name of the kernel function
  const ShapeVariants &variants;
  const TargetInfo &target;
  ConstantPool &constants; // constants for a device are added here
  uint32_t role = 0;       // KILN_STAGE_ROLE_ of the pipeline stage
};

/// Appends `int SYMBOL(const kiln_frame_t *frame)` for `entry` (a planned entry function) to `host`, a module of the
/// LLVM dialect.
mlir::LogicalResult emitHostCode(mlir::func::FuncOp entry, const HostCodeInput &input, mlir::ModuleOp host);

} // namespace kiln
