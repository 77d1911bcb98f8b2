// SPDX-License-Identifier: Apache-2.0
//
// Collects which kernels a lowered model calls, at which extents and how often, in some representative calls of the
// model.
#pragma once

#include "compiler/dialect/KilnDialect.h"
#include "compiler/library/ShapeVariants.h"
#include "llvm/Support/Error.h"

#include <map>
#include <string>
#include <vector>

namespace kiln {

/// One representative call of the model: a value for each dynamic dimension.
using Scenario = std::map<std::string, int64_t>;

/// Values of some dynamic dimensions. Several values of one dimension are alternatives.
using GivenExtents = std::map<std::string, std::vector<int64_t>>;

/// Returns the scenarios to tune for: every combination of the given values. Each combination yields two scenarios:
/// extents that are not given take their upper bound in the first one, and half of it in the second one. Fails on a
/// name that the model does not have and on a value outside of its bounds.
llvm::Expected<std::vector<Scenario>> makeScenarios(mlir::ModuleOp module, const GivenExtents &given);

/// Compute the extents of a call for these values of the entry's symbols, and how many times the loops around the call
/// execute it.
std::vector<int64_t> evaluateExtents(mlir::kiln::CallOp call, llvm::ArrayRef<int64_t> symbols);
double countCalls(mlir::Operation *op, llvm::ArrayRef<int64_t> symbols);

/// A kernel at one set of extents.
struct Workload {
  std::vector<int64_t> extents; // values of the kernel's index arguments
  double calls = 0;             // per forward pass of the model
};

/// A kernel and the calls that the model makes of it.
struct KernelUse {
  mlir::func::FuncOp kernel;
  /// Per tensor argument: whether it is a weight that was last read one pass ago, so that caches no longer hold it.
  std::vector<bool> isFresh;
  std::vector<std::vector<Workload>> scenarios; // the workloads of each scenario
  bool isStep = false; // whether all calls are in time loops, which alternate the direction in which tasks run
};

/// Returns the kernels that the module's entries call in these scenarios, and their shape-specialised variants, in the
/// order of the module.
std::vector<KernelUse> collectKernels(mlir::ModuleOp module, const ShapeVariants &forms,
                                      const std::vector<Scenario> &scenarios);

} // namespace kiln
