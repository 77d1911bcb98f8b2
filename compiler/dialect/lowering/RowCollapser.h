// SPDX-License-Identifier: Apache-2.0
//
// Finds the values of a kernel that have the leading axes which its ops may treat as one axis of rows. Ops are visited
// last to first (KernelOpInterface::collapseRows), so that all users of a value are visited before its producer.
#pragma once

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"

namespace mlir::kiln {

class RowCollapser {
public:
  /// For a kernel whose result has these leading extents, two or more.
  explicit RowCollapser(ArrayRef<AffineExpr> leading) : axes(leading.size()), leading(leading) {}

  static int64_t rankOf(Value value) { return cast<RankedTensorType>(value.getType()).getRank(); }

  /// Marks a value that has the axes; returns false if it does not, or if another op needs the whole value for every
  /// row.
  bool markFull(Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    if (type.getRank() < axes || ArrayRef(getExtents(type)).take_front(axes) != ArrayRef(leading) ||
        whole.contains(value))
      return false;
    full.insert(value);
    return true;
  }
  /// Marks a value that every row needs as a whole; returns false if another op collapses it.
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
