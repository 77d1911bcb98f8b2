// SPDX-License-Identifier: Apache-2.0
//
// How host code calls a kernel: what a tensor is to it, and which functions of the run time it calls. Host code, the
// tuner and the archive know a kernel's calling convention through this alone.
#pragma once

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace kiln {

/// An argument or result of a call, as values of host code: an extent (i64) where `element` is null, else a tensor.
struct KernelArgument {
  mlir::Value value; // the extent, or the address of the first element
  mlir::Type element;
  llvm::SmallVector<mlir::Value> extents; // i64, outermost first
};

class KernelAbi {
public:
  virtual ~KernelAbi() = default;

  /// The start of the names by which kernels call the run time: "halide_" for halide_malloc, which kiln_malloc serves.
  /// All four stand in runtime/src/model.h: malloc, free, do_par_for, error.
  virtual llvm::StringRef hookPrefix() const = 0;

  /// Bytes of memory, 8-aligned, by which a tensor of that rank is described to a kernel.
  virtual int64_t descriptorBytes(int64_t rank) const = 0;

  /// The LLVM function that takes arguments and results of these types: index and tensors.
  virtual mlir::LLVM::LLVMFunctionType functionType(mlir::TypeRange arguments) const = 0;

  /// Host code that calls `kernel`, the address of such a function, on a worker (kiln_worker_t of runtime/src/model.h).
  /// Tensors are described in `memory`, which has room for all of them. Returns the status, i32: 0 is success.
  virtual mlir::Value emitCall(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value kernel, mlir::Value worker,
                               llvm::ArrayRef<KernelArgument> arguments, mlir::Value memory) const = 0;

  /// For a call out of this process: describes a tensor in `memory` and returns the word that is passed for it.
  virtual uint64_t describe(void *address, mlir::Type element, llvm::ArrayRef<int64_t> shape, char *memory) const = 0;
};

} // namespace kiln
