// SPDX-License-Identifier: Apache-2.0
//
// Offsets for buffers that live for intervals of time, so that no two that live at once overlap (dynamic storage
// allocation).
#pragma once

#include <cstdint>

#include "llvm/ADT/ArrayRef.h"

namespace mlir::kiln {

struct ArenaInterval {
  int64_t bytes = 0;
  int first = 0, last = 0; // inclusive
  int64_t offset = 0;
};

/// Sets the offsets; returns the bytes of the arena. Deterministic.
int64_t packArena(llvm::MutableArrayRef<ArenaInterval> intervals);

/// The most bytes that live at a time.
int64_t getArenaLowerBound(llvm::ArrayRef<ArenaInterval> intervals);

} // namespace mlir::kiln
