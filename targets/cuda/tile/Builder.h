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

/// How a pointer of a kernel is used. Weight: nothing writes to it while kernels run. Read: nothing does while this one
/// runs. Map: it is a tensor map.
enum class Access { Weight, Read, Any, Map };

/// What a kernel is launched with.
struct KernelLaunch {
  int64_t threads = 0;     // a block, along x
  int64_t blocks = 0;      // so many are to fit into a multiprocessor's registers together; 0: the assembler's choice
  int64_t cluster = 1;     // so many blocks, along x, can reach each other's shared memory, on 9.0
  bool isEarly = true;     // it is launched while kernels before it still run, where there is that (Ptx.h)
  bool waitsAtOnce = true; // an early one: for those before it
};

/// On a pointer's argument of a device function, besides what says that it is read only: it is a weight. Any attribute
/// of LLVM's that is true of it would do.
extern const llvm::StringRef weightMark;
/// What prefetch() is in assembly.
constexpr llvm::StringLiteral prefetchText = "prefetch.global.L2 [$0];";

/// Loads the dialects of device functions.
void loadDialects(mlir::MLIRContext &context);

class Builder : public mlir::ImplicitLocOpBuilder {
public:
  /// Appends to the module.
  explicit Builder(mlir::ModuleOp module);

  //===- Kernels ---------------------------------------------------------===//

  /// What follows is the body of a function that is launched so.
  void beginKernel(llvm::StringRef name, const KernelLaunch &launch);
  /// Lets the kernel behind this one begin, where it is an early one, once all blocks have come here or ended. Its
  /// blocks take what room there is: here before the work of a kernel of few blocks, else behind most of it.
  void letNextBegin();
  /// In an early kernel that has not waited at once: from here on it may do more than read and prefetch weights. All
  /// threads come here.
  void awaitKernels();
  /// One more parameter of the kernel: i32, or an address of global memory.
  Value addParameter(Type type, Access access = Access::Any);
  /// One more: a tensor map, 128 bytes that the driver makes. The address of its copy among the parameters.
  Value addTensorMap();
  void endKernel();
  /// Brings the line of 128 bytes that the address is in to the second cache, sometime. Left out where no kernel is
  /// launched early.
  void prefetch(Value address);

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
