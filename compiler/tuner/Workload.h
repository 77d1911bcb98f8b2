// SPDX-License-Identifier: Apache-2.0
//
// What there is to tune: the kernels of a lowered model, each with the extents that it runs at in some representative
// calls of the model, how often, and the work that this is.
#pragma once

#include "compiler/emit/RowVariants.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kiln {

/// One representative call of the model: a value for each run-time extent.
using Scenario = std::map<std::string, int64_t>;

/// Values of some extents, several of one extent being alternatives.
using GivenExtents = std::map<std::string, std::vector<int64_t>>;

/// The scenarios to tune for: every combination of the given values; extents that are not given take their upper bound,
/// and in a second scenario of each combination half of it. Fails on a name that the model does not have and a value
/// outside of its bounds.
llvm::Expected<std::vector<Scenario>> makeScenarios(mlir::ModuleOp module, const GivenExtents &given);

/// A kernel at one set of extents.
struct Workload {
  std::vector<int64_t> extents; // of the kernel's index arguments
  double calls = 0;             // in a pass of the model
};

/// A kernel and its share of the model.
struct KernelUse {
  mlir::func::FuncOp kernel;
  std::vector<bool> isWeight;                   // one a tensor argument: whether the model passes a weight there
  std::vector<std::vector<Workload>> scenarios; // of those, one list each
};

/// The kernels that the module's entries call in these scenarios, and their forms for few rows, in the order of the
/// module.
std::vector<KernelUse> collectKernels(mlir::ModuleOp module, const RowVariants &forms,
                                      const std::vector<Scenario> &scenarios);

/// The bytes of all weights of the module, as stored.
int64_t weightBytes(mlir::ModuleOp module);

/// The extents of a tensor as it is stored, with the symbols' values put in.
std::vector<int64_t> storedShape(mlir::RankedTensorType type, llvm::ArrayRef<int64_t> extents);
int64_t storedBytes(mlir::RankedTensorType type, llvm::ArrayRef<int64_t> extents);
int64_t elementBytes(mlir::Type element);

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
