// SPDX-License-Identifier: Apache-2.0
//
// The GPU that the CUDA driver finds, as tuning files name it.
#pragma once

#include "compiler/schedule/Machine.h"
#include "llvm/Support/Error.h"

namespace kiln {

/// The first one, for measurements of code for `isa`. Fails without a driver or a GPU, saying why.
llvm::Expected<Machine> findGpu(llvm::StringRef isa);

} // namespace kiln
