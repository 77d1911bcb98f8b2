// SPDX-License-Identifier: Apache-2.0
//
// Evaluates single ops of arith and math on scalars.
#pragma once

#include "compiler/verify/ScalarProgram.h"

namespace kiln::verify {

/// Returns the function that the op computes, up to the width of its integers. Throws std::runtime_error for ops other
/// than arith and math on f32, index, i1, i8 or i32, and conversions between f32 and a shorter float.
ScalarProgram::Function functionOf(mlir::Operation *op);

/// Returns the number of bits of a Cell above those of the integer type; 0 for all other types, and for i1.
unsigned unusedBits(mlir::Type type);

inline Cell signExtended(Cell cell, unsigned unused) {
  if (unused)
    cell.integer = static_cast<std::int64_t>(static_cast<std::uint64_t>(cell.integer) << unused) >> unused;
  return cell;
}

} // namespace kiln::verify
