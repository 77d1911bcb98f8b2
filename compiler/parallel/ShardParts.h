// SPDX-License-Identifier: Apache-2.0
//
// Replicates values that all ranks have and a rank's heads read, for training with a fixed number of partial sums:
// there is one copy per part, and a rank reads its own copies. A rank thus receives their gradients from all other
// ranks and adds them up itself, in the order in which a single process does.
#pragma once

#include "compiler/dialect/gradients/RankParts.h"

namespace mlir::kiln {

/// Replicates keys and values with fewer heads than there are parts, for attention over a rank's heads.
void shareKeys(AttentionOp attention, const RankParts &parts);

/// Replicates weight and bias of a norm whose rows are split by heads along an axis.
void shareNorm(Operation *norm, unsigned axis, const RankParts &parts);

} // namespace mlir::kiln
