// SPDX-License-Identifier: Apache-2.0
//
// How entry-point glue calls a kernel: the descriptor of a tensor, and the run-time functions that kernels call. The
// glue, the tuner and the archive know a kernel's calling convention only through this interface.
#pragma once

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace kiln {

/// An argument or result of a call, as values of the glue: an extent (i64) where `element` is null, else a tensor.
struct KernelArgument {
  mlir::Value value; // the extent, or the address of the first element
  mlir::Type element;
  llvm::SmallVector<mlir::Value> extents; // i64, outermost first
};

class KernelAbi {
public:
  virtual ~KernelAbi() = default;

  /// Returns the prefix of the names by which kernels call the run time: "halide_" for halide_malloc, which kiln_malloc
  /// implements. All four functions are in runtime/src/core/model.h: malloc, free, do_par_for, error.
  virtual llvm::StringRef hookPrefix() const = 0;

  /// Returns the bytes, 8-aligned, of the descriptor of a tensor of that rank.
  virtual int64_t descriptorBytes(int64_t rank) const = 0;

  /// Returns the type of the LLVM function that takes arguments and results of these types: index and tensors.
  virtual mlir::LLVM::LLVMFunctionType functionType(mlir::TypeRange arguments) const = 0;

  /// Emits a call of `kernel`, the address of such a function, on a worker (kiln_worker_t of runtime/src/core/model.h).
  /// Tensor descriptors are written to `memory`, which has room for all of them. Returns the status, i32: 0 is success.
  virtual mlir::Value emitCall(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value kernel, mlir::Value worker,
                               llvm::ArrayRef<KernelArgument> arguments, mlir::Value memory) const = 0;

  /// For a call from C++ code: writes the descriptor of a tensor to `memory`, and returns the argument word to pass.
  virtual uint64_t describe(void *address, mlir::Type element, llvm::ArrayRef<int64_t> shape, char *memory) const = 0;
};

} // namespace kiln
