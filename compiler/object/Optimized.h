// SPDX-License-Identifier: Apache-2.0
//
// Kernels that Kiln generates as LLVM IR, without Halide.
#pragma once

#include "compiler/object/Object.h"

namespace kiln {

/// Compiles `module` like compileToObject(), optimised for speed, with vectorised loops. Returns assembly if
/// `isAssembly`.
llvm::Expected<std::string> compileOptimized(llvm::Module &module, const CpuName &name, bool isAssembly = false);

} // namespace kiln
