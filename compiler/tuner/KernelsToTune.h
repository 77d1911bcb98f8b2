// SPDX-License-Identifier: Apache-2.0
//
// Selects the kernels of a lowered model to tune, and their workloads.
#pragma once

#include "compiler/library/Calls.h"

namespace kiln {

struct KernelToTune {
  KernelUse use;
  std::vector<Workload> workloads; // of all scenarios together, without duplicates, the largest first
};

/// Returns the kernels whose names match `pattern`, a regular expression (empty: all), in the scenarios of the given
/// sizes. A kernel that no scenario calls is tuned at its upper bounds with zero calls, unless sizes are given: these
/// select the calls. The result may be empty, since a target may lack a kernel that others have. `names` receives the
/// names of all kernels. Fails on invalid sizes or patterns.
llvm::Expected<std::vector<KernelToTune>> findKernels(mlir::ModuleOp module, const ShapeVariants &forms,
                                                      const GivenExtents &extents, const std::string &pattern,
                                                      std::vector<std::string> &names);

/// Returns an error that explains why no target has a kernel to tune, with the names of all kernels.
llvm::Error noKernelToTune(const std::string &pattern, llvm::ArrayRef<std::string> names);

} // namespace kiln
