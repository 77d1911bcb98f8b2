// SPDX-License-Identifier: Apache-2.0
//
// Type inference of ops whose operands broadcast, used by their classes in ODS.
#pragma once

#include <optional>

#include "mlir/IR/Builders.h"

namespace mlir::kiln {

/// Infers from operands of one element type that broadcast as NumPy does. `element` is the result's; null: the
/// operands'.
LogicalResult inferBroadcast(std::optional<Location> location, ValueRange operands, Type element,
                             SmallVectorImpl<Type> &types);

} // namespace mlir::kiln
