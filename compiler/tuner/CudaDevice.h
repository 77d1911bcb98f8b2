// SPDX-License-Identifier: Apache-2.0
//
// Describes the GPU that the CUDA driver finds, as tuning files name it.
#pragma once

#include "compiler/schedule/Machine.h"
#include "llvm/Support/Error.h"

namespace kiln {

/// Returns the first GPU, for measurements of code for `isa`. Fails with the reason without a driver or a GPU.
llvm::Expected<Machine> findGpu(llvm::StringRef isa);

} // namespace kiln
