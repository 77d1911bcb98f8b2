// SPDX-License-Identifier: Apache-2.0
//
// One computation on neighbours instead of two on each: queries and keys of a joined projection are turned by rotary
// positions in one kernel.
#pragma once

#include "compiler/dialect/KilnDialect.h"

namespace mlir::kiln {

/// The same type with another, fixed extent of one axis.
RankedTensorType withExtent(RankedTensorType type, int64_t axis, int64_t extent);

/// Slices of one tensor that lie side by side: if the same ops follow both until attention or states read them, those
/// compute the two at once, and what reads them gets slices of that. Else nothing changes, since ops that both share
/// in part would have to be stored.
void computeTogether(SliceOp first, SliceOp second);

} // namespace mlir::kiln
