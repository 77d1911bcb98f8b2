// SPDX-License-Identifier: Apache-2.0
//
// GEMM-like ops: sums of products of two operands. mlir::linalg::inferContractionDims does not fit them: it ignores
// indices that are not loops, such as the head of grouped keys, h floordiv group, and operands that only have extents.
#pragma once

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <optional>

namespace kiln {

/// sums[..] += a[..] * b[..] over the reduction loops, with sums that start from zero. a and b are numbers of operands,
/// the others numbers of loops.
struct Contraction {
  mlir::linalg::GenericOp op;
  unsigned a = 0, b = 1;
  std::optional<unsigned> scale; // an operand that multiplies each element of b, an integer
  /// The parallel loops as sortLoops() sorts them: on which both a and b depend, b does not, only b does.
  llvm::SmallVector<unsigned> batch, rows, columns;
  llvm::SmallVector<unsigned> reduction;               // K, in loop order
  mlir::Operation *add = nullptr, *multiply = nullptr; // in the op's region

  /// The element type of the sums.
  mlir::Type sumType() const;
  /// Whether the index of an operand depends on a loop.
  bool dependsOn(unsigned operand, unsigned loop) const;
  /// Whether the sums or products must not be reassociated or rewritten.
  bool isStrict() const;

  /// Sorts the parallel loops, given in the order in which results are stored. The last one must be a column, for which
  /// it swaps a and b if that is possible; returns false otherwise.
  bool sortLoops(llvm::ArrayRef<unsigned> parallel);
};

/// Returns the op as a contraction whose loops are not sorted yet, if it is one: a and b are the factors in the order
/// of the product. Sums and products are of floats or integers, to which elements are converted.
std::optional<Contraction> contractionOf(mlir::linalg::GenericOp op);

} // namespace kiln
