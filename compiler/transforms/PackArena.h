// SPDX-License-Identifier: Apache-2.0
//
// Assigns offsets to buffers with live intervals so that no two live buffers overlap (dynamic storage allocation).
#pragma once

#include <cstdint>

#include "llvm/ADT/ArrayRef.h"

namespace mlir::kiln {

struct ArenaInterval {
  int64_t bytes = 0;
  int first = 0, last = 0; // inclusive
  int64_t offset = 0;
};

/// Sets the offsets and returns the size of the arena in bytes. Deterministic.
int64_t packArena(llvm::MutableArrayRef<ArenaInterval> intervals);

/// Returns the largest number of bytes that are live at a time.
int64_t getArenaLowerBound(llvm::ArrayRef<ArenaInterval> intervals);

} // namespace mlir::kiln
