// SPDX-License-Identifier: Apache-2.0
//
// Merges equal computations on adjacent slices into one: rotary positions are applied to the queries and keys of a
// joined projection in one kernel.
#pragma once

#include "compiler/dialect/KilnDialect.h"

namespace mlir::kiln {

/// Returns the type with another, static size of one axis.
RankedTensorType withExtent(RankedTensorType type, int64_t axis, int64_t extent);

/// Merges the computations on two adjacent slices of one tensor. If the same ops follow both slices until attention or
/// states read them, these ops compute both at once, and the readers get slices of the result. Otherwise nothing
/// changes, since partially merged values would have to be stored.
void computeTogether(SliceOp first, SliceOp second);

} // namespace mlir::kiln
