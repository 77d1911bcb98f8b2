// SPDX-License-Identifier: Apache-2.0
//
// Prints a lowered kernel for people: its loops, the allocations in them, and which buffers each of them loads and
// stores.
#pragma once

#include "targets/halide/Compat.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace kiln::halide {

/// Prints the loop nest of the kernel's statement, without `symbol`, the prefix of its names. Stores that differ only
/// in their index, as unrolling makes them, are one line with their number.
std::string printLoopNest(const Halide::Internal::Stmt &statement, llvm::StringRef symbol);

} // namespace kiln::halide
