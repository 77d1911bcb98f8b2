// SPDX-License-Identifier: Apache-2.0
//
// Attention in kernels: softmax(masked(scores)) values. It is one op, kiln.kernel_attention, until what reads the ops
// of a kernel asks for those that it is composed of.
#pragma once

#include "compiler/dialect/KernelAttention.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <optional>

namespace kiln {

using mlir::kiln::AttentionOps;
using mlir::kiln::KeyLimit;

/// A kernel function of linalg ops: the function itself, or a copy of it in which attention is decomposed.
class DecomposedKernel {
public:
  explicit DecomposedKernel(mlir::func::FuncOp kernel);

  mlir::func::FuncOp get() const { return kernel; }
  /// Returns the ops of the kernel's attention; null if it has none.
  const AttentionOps *attention() const { return ops ? &*ops : nullptr; }

private:
  mlir::OwningOpRef<mlir::ModuleOp> copy; // null: the function itself is used
  mlir::func::FuncOp kernel;
  std::optional<AttentionOps> ops;
};

} // namespace kiln
