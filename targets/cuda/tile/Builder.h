// SPDX-License-Identifier: Apache-2.0
//
// Builds functions that run on a GPU, from arith, math, scf, llvm and nvvm ops. Counts and coordinates are i32, offsets
// from an address are in elements; floats of 16 bits are computed with as they are stored, so whoever computes in f32
// converts. Instructions of tensor cores and asynchronous copies get their place here.
#pragma once

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kiln::cuda::tile {

using mlir::Type;
using mlir::Value;
using mlir::ValueRange;
using Values = llvm::SmallVector<Value>;

/// How a pointer of a kernel is used; Map: it is a tensor map.
enum class Access { Read, Any, Map };

/// Loads the dialects of device functions.
void loadDialects(mlir::MLIRContext &context);

class Builder : public mlir::ImplicitLocOpBuilder {
public:
  /// Appends to the module.
  explicit Builder(mlir::ModuleOp module);

  //===- Kernels ---------------------------------------------------------===//

  /// What follows is the body of a function that is launched with so many threads a block, along x.
  /// `blocks`: as many are to fit into a multiprocessor's registers together; 0: the assembler's choice. `cluster`: so
  /// many blocks, along x, can reach each other's shared memory, on 9.0.
  void beginKernel(llvm::StringRef name, int64_t threads, int64_t blocks = 0, int64_t cluster = 1);
  /// One more parameter of the kernel: i32, or an address of global memory. With Access::Read nothing writes to that
  /// memory while the kernel runs.
  Value addParameter(Type type, Access access = Access::Any);
  /// One more: a tensor map, 128 bytes that the driver makes. The address of its copy among the parameters.
  Value addTensorMap();
  void endKernel();

  /// The thread's number in its block, the block's in the grid.
  Value threadId();
  Value blockId();

  //===- Integers --------------------------------------------------------===//

  Type pointer();
  Value integer(int64_t value) { return integer(getI32Type(), value); }
  Value integer(Type type, int64_t value);

  // Sums and products of coordinates do not overflow.
  Value add(Value x, Value y);
  Value sub(Value x, Value y);
  Value mul(Value x, Value y);
  /// Of numbers without a sign.
  Value div(Value x, Value y);
  Value rem(Value x, Value y);
  /// A coordinate held between 0 and `size` - 1.
  Value clamp(Value x, Value size);
  Value compare(mlir::arith::CmpIPredicate predicate, Value x, Value y);
  Value isBelow(Value x, Value y) { return compare(mlir::arith::CmpIPredicate::slt, x, y); }
  Value both(Value x, Value y) { return createOrFold<mlir::arith::AndIOp>(x, y); }
  Value select(Value condition, Value yes, Value no) { return createOrFold<mlir::arith::SelectOp>(condition, yes, no); }
  /// An i32 as an i64, with its sign.
  Value widen(Value x);

  //===- Memory ----------------------------------------------------------===//

  /// The element at an offset of i32 or i64 from an address; an i1 is stored in a byte.
  Value load(Type element, Value address, Value offset);
  void store(Value value, Value address, Value offset);
  /// Where that is.
  Value addressOf(Type stored, Value address, Value offset);

  //===- Control ---------------------------------------------------------===//

  /// for (i = 0; i < count; ++i) values = body(i, values).
  Values loop(Value count, ValueRange initial, llvm::function_ref<Values(Value index, ValueRange values)> body);
  void ifThen(Value condition, llvm::function_ref<void()> body);
  Value ifElse(Value condition, Type type, llvm::function_ref<Value()> yes, llvm::function_ref<Value()> no);
  Values ifElse(Value condition, mlir::TypeRange types, llvm::function_ref<Values()> yes,
                llvm::function_ref<Values()> no);

  //===- Warps -----------------------------------------------------------===//

  /// The value that the lane with this number in other bits has; all lanes take part. f32 or i32.
  Value shuffleXor(Value value, int32_t bits);

private:
  mlir::LLVM::LLVMFuncOp kernel;
  llvm::SmallVector<Access> accesses; // of the kernel's parameters
};

} // namespace kiln::cuda::tile
