// SPDX-License-Identifier: Apache-2.0
//
// What a call of a kernel reads, computes and writes at given extents.
#pragma once

#include "compiler/schedule/Machine.h"
#include "targets/target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/BuiltinOps.h"
#include <cstdint>
#include <vector>

namespace kiln {

/// How much memory the weights of consecutive calls of a kernel take together: as much as all weights of the module, at
/// most twice the machine's last cache.
int64_t rotatedWeightBytes(mlir::ModuleOp module, const Machine &machine, const Target &target);

/// The extents of a tensor with the symbols' values put in, and the bytes that it is stored in.
std::vector<int64_t> shapeOf(mlir::RankedTensorType type, llvm::ArrayRef<int64_t> extents);
int64_t storedBytes(mlir::RankedTensorType type, llvm::ArrayRef<int64_t> extents);

/// The extents of an op's loops.
std::vector<int64_t> loopExtents(mlir::linalg::GenericOp op, llvm::ArrayRef<int64_t> extents);

/// What a call must do at least, whatever its schedule: floating point operations, without those that masks leave out,
/// bytes of arguments and of results.
struct Work {
  double operations = 0, bytesRead = 0, bytesWritten = 0;
};
Work measureWork(mlir::func::FuncOp kernel, llvm::ArrayRef<int64_t> extents);

/// Sensible values of an integer argument, first and past the last: below the extent of the axis that they index, or
/// in the upper half of the loops that they are compared with.
std::pair<int64_t, int64_t> integerRange(mlir::func::FuncOp kernel, unsigned argument, llvm::ArrayRef<int64_t> extents);

} // namespace kiln
