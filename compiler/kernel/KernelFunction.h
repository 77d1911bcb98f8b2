// SPDX-License-Identifier: Apache-2.0
//
// A view of a kernel function, the one place that reads its attributes: symbols and their bounds, tensors, which memory
// arguments and results share. Also the extents of the loops of its ops.
#pragma once

#include "compiler/dialect/Extents.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <optional>

namespace kiln {

/// Whether the function is a kernel.
bool isKernel(mlir::func::FuncOp function);

/// The arguments of a kernel are its symbols, which are index arguments, and then tensors.
class KernelFunction {
public:
  KernelFunction(mlir::func::FuncOp function) : function(function) {}
  /// Returns the kernel that the op is, or that contains it.
  static KernelFunction of(mlir::Operation *op);

  unsigned numSymbols() const;
  mlir::MutableArrayRef<mlir::BlockArgument> tensors() const;
  mlir::OperandRange results() const;

  /// The bounds of the symbols.
  llvm::SmallVector<mlir::kiln::Interval> bounds() const;
  void setBounds(llvm::ArrayRef<mlir::kiln::Interval> bounds) const;
  /// Returns the bounds of an extent; nullopt if 64-bit integers cannot hold them.
  std::optional<mlir::kiln::Interval> boundsOf(mlir::AffineExpr extent) const;

  /// Returns the numbers of the tensors whose memory a result of the same type may share.
  llvm::ArrayRef<int64_t> inPlace() const;
  /// Whether a tensor is a weight at every call.
  bool isWeight(unsigned tensor) const;
  /// Whether the bits of a result's row must not depend on other rows or the schedule.
  bool isBatchInvariant() const;

  /// Checks the body, and that each symbol has bounds. Emits a diagnostic.
  mlir::LogicalResult verify() const;
  /// Checks that a tensor's dimensions are known. Emits a diagnostic.
  mlir::LogicalResult verifyExtents(mlir::Value tensor) const;

private:
  mlir::func::FuncOp function;
};

/// Whether the kernel that the op is, or that contains it, is batch-invariant.
bool isBatchInvariant(mlir::Operation *inKernel);

/// Return the extents of an op's loops, or of one loop, over the kernel's symbols; null for a loop that no operand has
/// as a dimension.
llvm::SmallVector<mlir::AffineExpr> loopExtents(mlir::linalg::GenericOp op);
mlir::AffineExpr loopExtent(mlir::linalg::GenericOp op, unsigned loop);

} // namespace kiln
