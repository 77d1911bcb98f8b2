// SPDX-License-Identifier: Apache-2.0
//
// A lowered kernel as people read it: its loops, what is allocated in them, and which buffers each of them loads and
// stores.
#pragma once

#include "llvm/ADT/StringRef.h"
#include <Halide.h>
#include <string>

namespace kiln::halide {

/// The loop nest of the kernel's statement; `symbol` is what its names begin with, which is left out. Stores that are
/// equal but for their index, as unrolling makes them, are one line with their number.
std::string printLoopNest(const Halide::Internal::Stmt &statement, llvm::StringRef symbol);

} // namespace kiln::halide
