// SPDX-License-Identifier: Apache-2.0
//
// The function of one op in a scan's body: loops over the elements of its results that a task computes.
#pragma once

#include "compiler/dialect/Extents.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "targets/cpu/scan/ScanEmitter.h"

namespace kiln::cpu {

/// The memory of a tensor: all of it, or a task's block if `blocked` is the axis of one in scratch memory, where the
/// block begins at index 0 and has room for `room` elements along the axis.
struct Layout {
  mlir::RankedTensorType type;
  std::optional<unsigned> blocked;
  int64_t room = 0;
};

/// Arithmetic on i64, with constants folded.
class IndexBuilder : public mlir::ImplicitLocOpBuilder {
public:
  using Value = mlir::Value;
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  Value number(int64_t value) { return mlir::arith::ConstantOp::create(*this, getI64IntegerAttr(value)); }
  Value plus(Value a, Value b) { return createOrFold<mlir::arith::AddIOp>(a, b); }
  Value times(Value a, Value b) { return createOrFold<mlir::arith::MulIOp>(a, b); }
  Value minus(Value a, Value b) { return createOrFold<mlir::arith::SubIOp>(a, b); }
  Value dividedBy(Value a, Value b) { return createOrFold<mlir::arith::DivUIOp>(a, b); }
  Value least(Value a, Value b) { return createOrFold<mlir::arith::MinUIOp>(a, b); }
  Value roundedUp(Value a, Value by) { return dividedBy(plus(a, minus(by, number(1))), by); }
  mlir::Type pointer() { return mlir::LLVM::LLVMPointerType::get(getContext()); }

  /// Returns the value of an expression over loops and the kernel's symbols.
  Value evaluate(mlir::AffineExpr expr, llvm::ArrayRef<Value> loops, llvm::ArrayRef<Value> symbols);
  /// Returns the address of the element with that number.
  Value address(Value base, mlir::Type element, Value index);
};

/// Returns the type of an element in memory: a boolean is a byte.
mlir::Type storedType(mlir::Type element);

/// A function that is being built. Its arguments are pointers, then the first index and the number of a task's indices
/// along the divided axis, then the symbols.
class OpFunction {
public:
  OpFunction(mlir::ModuleOp module, llvm::StringRef name, unsigned pointers, unsigned symbols,
             const ScanMachine &machine);

  /// Computes the op. `operands` has the layout and the number of the pointer of each operand of the op, `results` of
  /// each of its results; `divided` is its divided loop.
  struct Memory {
    Layout layout;
    unsigned pointer;
  };
  void compute(mlir::linalg::GenericOp op, llvm::ArrayRef<Memory> operands, llvm::ArrayRef<Memory> results,
               std::optional<unsigned> divided);
  /// Copies a task's block from one tensor to another, or fills it.
  void copy(const Memory &from, const Memory &to, std::optional<unsigned> divided);
  void fill(mlir::TypedAttr value, const Memory &to, std::optional<unsigned> divided);

  mlir::LLVM::LLVMFuncOp function;

private:
  using Value = mlir::Value;
  struct Nest;

  Value load(const Memory &memory, mlir::AffineMap map, llvm::ArrayRef<Value> loops);
  void store(Value value, const Memory &memory, mlir::AffineMap map, llvm::ArrayRef<Value> loops);
  Value addressOf(const Memory &memory, mlir::AffineMap map, llvm::ArrayRef<Value> loops);
  llvm::SmallVector<Value> evaluate(mlir::linalg::GenericOp op, llvm::ArrayRef<Memory> operands,
                                    llvm::ArrayRef<Value> loops, llvm::ArrayRef<Value> accumulators);
  Value clone(mlir::Operation &op, llvm::ArrayRef<Value> loops, llvm::DenseMap<Value, Value> &values);
  Value cloneFloat(mlir::Operation &op, llvm::ArrayRef<Value> operands);
  Value constant(mlir::TypedAttr value);
  Value upperOf(mlir::AffineExpr extent, bool isDivided);
  /// Runs the body in loops of that order; the values that it returns are carried by the last `carrying` loops.
  llvm::SmallVector<Value> nest(llvm::ArrayRef<unsigned> order, llvm::ArrayRef<mlir::AffineExpr> extents,
                                std::optional<unsigned> divided, llvm::SmallVector<Value> &loops,
                                llvm::ArrayRef<Value> carried,
                                llvm::function_ref<llvm::SmallVector<Value>(llvm::ArrayRef<Value>)> body);

  IndexBuilder b;
  llvm::SmallVector<Value> symbols;
  Value first, count;
  const ScanMachine &machine;
  bool isOrdered = false;
};

} // namespace kiln::cpu
