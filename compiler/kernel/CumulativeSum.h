// SPDX-License-Identifier: Apache-2.0
//
// Cumulative sums in kernels. linalg has no op for them, so each element is a separate sum over its whole line in which
// later elements count as 0. Targets match such ops and compute a line in one pass.
#pragma once

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <optional>

namespace kiln {

/// out[.., t, ..] = sum of (s <= t ? term(.., s, ..) : 0) over s, the op's last loop and its only reduction loop.
struct CumulativeSum {
  mlir::linalg::GenericOp op;
  unsigned axis = 0;      // the loop t
  bool isReverse = false; // s >= t instead
  mlir::Value term;       // a value in the op's region that does not depend on t
};

std::optional<CumulativeSum> asCumulativeSum(mlir::linalg::GenericOp op);

} // namespace kiln
