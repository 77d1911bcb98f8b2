// SPDX-License-Identifier: Apache-2.0
//
// What all ranks have alike and a rank's own heads read, in trainings whose sums have a fixed number of parts: there is
// one of it for each part, of which a rank reads its own. So a rank gets their gradients from all others, and adds all
// of them up itself, as one process does.
#pragma once

#include "compiler/transforms/SumParts.h"

namespace mlir::kiln {

/// Keys and values of fewer heads than there are parts, for attention of a rank's heads.
void shareKeys(AttentionOp attention, const RankParts &parts);

/// Weight and bias of a norm whose rows a rank has its heads' of, which are along an axis.
void shareNorm(Operation *norm, unsigned axis, const RankParts &parts);

} // namespace mlir::kiln
