// SPDX-License-Identifier: Apache-2.0
//
// Result types of the ops of one form, for their classes in ODS.
#pragma once

#include <optional>

#include "mlir/IR/Builders.h"

namespace mlir::kiln {

/// Of operands of one element type that broadcast as NumPy does. `element` is the result's, or null for the operands'.
LogicalResult inferBroadcast(std::optional<Location> location, ValueRange operands, Type element,
                             SmallVectorImpl<Type> &types);

} // namespace mlir::kiln
