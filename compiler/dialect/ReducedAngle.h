// SPDX-License-Identifier: Apache-2.0
//
// Angles that need no range reduction: an op that knows its angle as a fraction of a turn reduces it exactly, in
// integers, before it computes the sine.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace mlir::kiln {

/// On math.sin and math.cos: the argument is within [-pi / 4, pi / 4].
inline constexpr llvm::StringLiteral reducedAngleAttrName = "kiln.reduced_angle";

} // namespace mlir::kiln
