// SPDX-License-Identifier: Apache-2.0
//
// Builds functions that run on a GPU, from arith, math, scf, llvm and nvvm ops. Counts and coordinates are i32, and
// offsets from an address are in elements. Arithmetic on 16-bit floats stays in their type, so a caller that computes
// in f32 converts them. Tensor-core instructions and asynchronous copies are in the other headers of this folder.
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

/// How a kernel uses a pointer. Weight: nothing writes to the memory while kernels run. Read: nothing writes to it
/// while this kernel runs. Map: it is a tensor map.
enum class Access { Weight, Read, Any, Map };

/// The launch configuration of a kernel.
struct KernelLaunch {
  int64_t threads = 0;           // per block, along x
  int64_t blocks = 0;            // how many must fit into the registers of a multiprocessor; 0: the assembler's choice
  int64_t cluster = 1;           // blocks, along x, that can access each other's shared memory, on 9.0
  bool isDependentLaunch = true; // programmatic dependent launch, where supported (ptx/DeviceModule.h)
  bool waitsAtOnce = true;       // if isDependentLaunch: waits for earlier kernels at its start
};

/// Marks a read-only pointer argument of a device function as a weight. Any LLVM attribute that is true of such a
/// pointer would do.
extern const llvm::StringRef weightMark;
/// The inline assembly of prefetch().
constexpr llvm::StringLiteral prefetchText = "prefetch.global.L2 [$0];";

/// Loads the dialects of device functions.
void loadDialects(mlir::MLIRContext &context);

class Builder : public mlir::ImplicitLocOpBuilder {
public:
  /// Appends functions to the module.
  explicit Builder(mlir::ModuleOp module);

  //===- Kernels ---------------------------------------------------------===//

  /// Begins the body of a function that has this launch configuration.
  void beginKernel(llvm::StringRef name, const KernelLaunch &launch);
  /// Lets the next kernel begin, if it uses programmatic dependent launch, once all blocks have reached this
  /// instruction or ended. The blocks of the next kernel take the resources that are free: a kernel of few blocks
  /// calls this before its work, other kernels after most of it.
  void launchDependents();
  /// Waits for earlier kernels, if the launch has isDependentLaunch but not waitsAtOnce; before, the kernel may only
  /// read and prefetch weights. All threads must call this.
  void waitForDependencies();
  /// Adds a parameter to the kernel: i32, or an address of global memory.
  Value addParameter(Type type, Access access = Access::Any);
  /// Adds a tensor map as a parameter, 128 bytes that the driver encodes. Returns the address of its copy among the
  /// parameters.
  Value addTensorMap();
  void endKernel();
  /// Prefetches the line of 128 bytes that contains the address to the L2 cache. Code for GPUs without programmatic
  /// dependent launch omits this.
  void prefetch(Value address);

  /// Return the index of the thread in its block, and of the block in the grid.
  Value threadId();
  Value blockId();

  //===- Integers --------------------------------------------------------===//

  Type pointer();
  Value integer(int64_t value) { return integer(getI32Type(), value); }
  Value integer(Type type, int64_t value);

  // Sums and products of coordinates must not overflow.
  Value add(Value x, Value y);
  Value sub(Value x, Value y);
  Value mul(Value x, Value y);
  /// Unsigned division and remainder.
  Value div(Value x, Value y);
  Value rem(Value x, Value y);
  /// Clamps a coordinate to the range from 0 to `size` - 1.
  Value clamp(Value x, Value size);
  Value compare(mlir::arith::CmpIPredicate predicate, Value x, Value y);
  Value isBelow(Value x, Value y) { return compare(mlir::arith::CmpIPredicate::slt, x, y); }
  Value both(Value x, Value y) { return createOrFold<mlir::arith::AndIOp>(x, y); }
  Value select(Value condition, Value yes, Value no) { return createOrFold<mlir::arith::SelectOp>(condition, yes, no); }
  /// Sign-extends an i32 to i64.
  Value widen(Value x);

  //===- Memory ----------------------------------------------------------===//

  /// Load and store the element at an offset of i32 or i64 from an address; an i1 is stored in a byte.
  Value load(Type element, Value address, Value offset);
  void store(Value value, Value address, Value offset);
  /// Returns the address of that element.
  Value addressOf(Type stored, Value address, Value offset);

  //===- Control ---------------------------------------------------------===//

  /// Builds for (i = 0; i < count; ++i) values = body(i, values).
  Values loop(Value count, ValueRange initial, llvm::function_ref<Values(Value index, ValueRange values)> body);
  void ifThen(Value condition, llvm::function_ref<void()> body);
  Value ifElse(Value condition, Type type, llvm::function_ref<Value()> yes, llvm::function_ref<Value()> no);
  Values ifElse(Value condition, mlir::TypeRange types, llvm::function_ref<Values()> yes,
                llvm::function_ref<Values()> no);

  //===- Warps -----------------------------------------------------------===//

  /// Returns the value of the lane whose number differs in these bits (butterfly shuffle); all lanes must take part.
  /// f32 or i32.
  Value shuffleXor(Value value, int32_t bits);

private:
  mlir::LLVM::LLVMFuncOp kernel;
  llvm::SmallVector<Access> accesses; // how the kernel uses its parameters
};

} // namespace kiln::cuda::tile
