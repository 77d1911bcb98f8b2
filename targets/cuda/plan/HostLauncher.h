// SPDX-License-Identifier: Apache-2.0
//
// The object of a kernel: its images as data, the kiln_cuda_module_t that names them, and the host launcher, which
// performs the launches of the plan.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "targets/cuda/plan/LaunchPlan.h"
#include "llvm/Support/Error.h"

namespace kiln::cuda {

/// `symbol`: the name of the host launcher; the module's name is `symbol` with deviceModuleSuffix. The object calls
/// only the run time's kiln_cuda_launch and kiln_cuda_launch_tma.
llvm::Expected<std::string> compileHostLauncher(const LaunchPlan &plan, mlir::func::FuncOp kernel,
                                                llvm::StringRef symbol, llvm::StringRef hostTriple,
                                                llvm::StringRef hostCpu);

} // namespace kiln::cuda
