// SPDX-License-Identifier: Apache-2.0
//
// Decides where the elements of a kernel's tensors are stored: in arguments and results, in scratch memory, or
// nowhere, so that each use computes them.
#pragma once

#include "compiler/kernel/Attention.h"
#include "targets/cuda/Kernel.h"
#include "targets/cuda/plan/LaunchPlan.h"
#include "llvm/ADT/DenseMap.h"
#include <optional>

namespace kiln::cuda {

/// A slice of a value that is a separate tensor: ranges of the value's axes that begin at `first`.
struct Window {
  mlir::Value tensor;
  llvm::SmallVector<int64_t> first;
};

/// A store of a value's elements to memory.
struct Store {
  mlir::Value value;
  Parameter place;
  std::optional<Window> window = std::nullopt; // nullopt: all elements
};

/// A kernel stage: the work of one launch, unless a strategy fuses several stages.
struct KernelStage {
  mlir::linalg::GenericOp op; // its results are stored; null: values are copied
  llvm::SmallVector<Store> stores;
};

/// The placement of a kernel, which outlives it.
class Placement {
public:
  explicit Placement(const DecomposedKernel &kernel);

  /// Returns where the value is stored once its stage is done; nullopt if each use computes it.
  std::optional<Parameter> find(mlir::Value value) const;
  /// Whether it is an argument whose memory a result may share.
  bool isInPlace(const Parameter &place) const;

  /// Whether an element of the op needs a loop: the op reduces, or an op that is computed where the op reads it does.
  bool reduces(mlir::linalg::GenericOp op) const;
  /// Whether a stage reads the value from memory.
  bool isRead(const KernelStage &stage, mlir::Value value) const;
  /// Sets the launch of each stage and the values that no stage stores, and reassigns scratch memory.
  void assignLaunches(llvm::ArrayRef<size_t> launches, llvm::ArrayRef<mlir::Value> unstored);

  const AttentionOps *attention; // null: the kernel has none
  std::vector<KernelStage> stages;
  int64_t scratchBytes = 0;

private:
  struct Read {
    mlir::Value tensor;
    mlir::AffineMap map; // from the stage's loops; null: any element
  };
  using Reads = llvm::SmallVector<Read>;

  bool isNextToProduct(mlir::linalg::GenericOp op) const;
  bool isNormOfProduct(mlir::linalg::GenericOp op) const;
  bool isComputed(mlir::linalg::GenericOp op) const;
  int64_t costOf(mlir::Value tensor) const;
  void place(mlir::linalg::GenericOp op);
  void findWindows();
  void copyResults();
  void addReads(mlir::Value tensor, mlir::AffineMap map, Reads &reads) const;
  void addReads(mlir::linalg::GenericOp op, llvm::ArrayRef<mlir::AffineExpr> loops, unsigned dims, Reads &reads) const;
  Reads readsOf(const KernelStage &stage) const;
  bool isOverwritten(mlir::linalg::GenericOp op, mlir::Value result, llvm::ArrayRef<Reads> reads) const;
  void keepArguments();
  void assignScratch(llvm::ArrayRef<size_t> launches);

  mlir::func::FuncOp kernel;
  unsigned symbols, arguments; // numbers of index arguments and of tensor arguments
  llvm::DenseMap<mlir::Value, Parameter> places;
  int64_t scratchValues = 0; // each has a number until it has an offset
};

} // namespace kiln::cuda
