// SPDX-License-Identifier: Apache-2.0
//
// Which values of a kernel have the leading axes that its ops may treat as one axis of rows. Each op is asked
// (KernelOpInterface::collapseRows), last to first, so that what a value is to its users is known before its own op.
#pragma once

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"

namespace mlir::kiln {

class RowCollapser {
public:
  /// Of a kernel whose result has these leading extents, two or more.
  explicit RowCollapser(ArrayRef<AffineExpr> leading) : axes(leading.size()), leading(leading) {}

  static int64_t rankOf(Value value) { return cast<RankedTensorType>(value.getType()).getRank(); }

  /// The value has the axes; false if it has not, or if another op needs all of it.
  bool markFull(Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    if (type.getRank() < axes || ArrayRef(getExtents(type)).take_front(axes) != ArrayRef(leading) ||
        whole.contains(value))
      return false;
    full.insert(value);
    return true;
  }
  /// Every row needs all of the value; false if another op collapses it.
  bool markWhole(Value value) {
    whole.insert(value);
    return !full.contains(value);
  }

  const int64_t axes;
  llvm::SmallDenseSet<Value> full, whole;

private:
  SmallVector<AffineExpr> leading;
};

} // namespace mlir::kiln
