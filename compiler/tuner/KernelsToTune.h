// SPDX-License-Identifier: Apache-2.0
//
// Which kernels of a lowered model a run tunes, and at which extents.
#pragma once

#include "compiler/emit/Calls.h"

namespace kiln {

struct KernelToTune {
  KernelUse use;
  std::vector<Workload> workloads; // of all scenarios together, each set of extents once, the largest first
};

/// The kernels whose names match `pattern`, a regular expression (empty: all), in the scenarios of the given extents.
/// A kernel that no scenario calls is tuned at its upper bounds and counts no calls, unless extents are given: these
/// say which calls matter. May be none: a target may lack a kernel that others have. `names` gets those of all kernels.
/// Fails on extents and patterns that are no such.
llvm::Expected<std::vector<KernelToTune>> findKernels(mlir::ModuleOp module, const RowVariants &forms,
                                                      const GivenExtents &extents, const std::string &pattern,
                                                      std::vector<std::string> &names);

/// Why nothing is left to tune, on any target, with the names of all kernels.
llvm::Error noKernelToTune(const std::string &pattern, llvm::ArrayRef<std::string> names);

} // namespace kiln
