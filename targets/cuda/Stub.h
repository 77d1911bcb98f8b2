// SPDX-License-Identifier: Apache-2.0
//
// The object of a kernel: its images as data, the kiln_cuda_module_t that names them, and the function by which host
// code launches what the plan says.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "targets/cuda/Plan.h"
#include "llvm/Support/Error.h"

namespace kiln::cuda {

/// `symbol`: the name of the stub; the module's has deviceModuleSuffix behind it. The one function that the object
/// calls is the run time's kiln_cuda_launch.
llvm::Expected<std::string> compileStub(const DevicePlan &plan, mlir::func::FuncOp kernel, llvm::StringRef symbol,
                                        llvm::StringRef hostTriple, llvm::StringRef hostCpu);

} // namespace kiln::cuda
