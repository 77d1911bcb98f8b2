// SPDX-License-Identifier: Apache-2.0
//
// Which kernels a lowered model calls, at which extents and how often, in some representative calls of the model.
#pragma once

#include "compiler/dialect/KilnDialect.h"
#include "compiler/emit/RowVariants.h"
#include "llvm/Support/Error.h"

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

/// The extents of a call whose entry's symbols have these values, and how often the loops around it make it.
std::vector<int64_t> evaluateExtents(mlir::kiln::CallOp call, llvm::ArrayRef<int64_t> symbols);
double countCalls(mlir::Operation *op, llvm::ArrayRef<int64_t> symbols);

/// A kernel at one set of extents.
struct Workload {
  std::vector<int64_t> extents; // of the kernel's index arguments
  double calls = 0;             // in a pass of the model
};

/// A kernel and its share of the model.
struct KernelUse {
  mlir::func::FuncOp kernel;
  std::vector<bool> isFresh;                    // one a tensor argument: a weight that was last read a pass ago
  std::vector<std::vector<Workload>> scenarios; // of those, one list each
  bool isStep = false; // all calls are of loops over time, which turn the order of tasks from step to step
};

/// The kernels that the module's entries call in these scenarios, and their forms for few rows, in the order of the
/// module.
std::vector<KernelUse> collectKernels(mlir::ModuleOp module, const RowVariants &forms,
                                      const std::vector<Scenario> &scenarios);

} // namespace kiln
