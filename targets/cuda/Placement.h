// SPDX-License-Identifier: Apache-2.0
//
// Where the elements of a kernel's tensors are: in arguments and results, in scratch memory, or nowhere, so that each
// is computed where it is used.
#pragma once

#include "targets/cuda/Kernel.h"
#include "targets/cuda/Plan.h"
#include "llvm/ADT/DenseMap.h"
#include <optional>

namespace kiln::cuda {

/// A part of a value that is a tensor of its own: ranges of its axes from these indices on.
struct Window {
  mlir::Value tensor;
  llvm::SmallVector<int64_t> first;
};

/// Elements of a value that are written to memory.
struct Store {
  mlir::Value value;
  Parameter place;
  std::optional<Window> window = std::nullopt; // none: all of them
};

/// What one launch does.
struct Step {
  mlir::linalg::GenericOp op; // whose results are stored; null: values are copied
  llvm::SmallVector<Store> stores;
};

class Placement {
public:
  explicit Placement(mlir::func::FuncOp kernel);

  /// Where the value is once its step is done; nothing if it is computed where it is used.
  std::optional<Parameter> find(mlir::Value value) const;
  /// Whether it is an argument in whose memory a result may lie.
  bool isInPlace(const Parameter &place) const;

  /// Whether a step reads the value from memory.
  bool isRead(const Step &step, mlir::Value value) const;
  /// Says the launch of each step, and what none of them stores.
  void join(llvm::ArrayRef<size_t> launches, llvm::ArrayRef<mlir::Value> unstored);

  std::vector<Step> steps;
  int64_t scratchBytes = 0;

private:
  struct Read {
    mlir::Value tensor;
    mlir::AffineMap map; // from the loops of the step; null: anywhere
  };
  using Reads = llvm::SmallVector<Read>;

  bool isBesideProduct(mlir::linalg::GenericOp op) const;
  bool isNormOfProduct(mlir::linalg::GenericOp op) const;
  bool isComputed(mlir::linalg::GenericOp op) const;
  bool reduces(mlir::linalg::GenericOp op) const;
  int64_t costOf(mlir::Value tensor) const;
  void place(mlir::linalg::GenericOp op);
  void findWindows();
  void copyResults();
  void addReads(mlir::Value tensor, mlir::AffineMap map, Reads &reads) const;
  void addReads(mlir::linalg::GenericOp op, llvm::ArrayRef<mlir::AffineExpr> loops, unsigned dims, Reads &reads) const;
  Reads readsOf(const Step &step) const;
  bool isOverwritten(mlir::linalg::GenericOp op, mlir::Value result, llvm::ArrayRef<Reads> reads) const;
  void keepArguments();
  void assignScratch(llvm::ArrayRef<size_t> launches);

  mlir::func::FuncOp kernel;
  unsigned symbols, arguments; // of the kernel
  llvm::DenseMap<mlir::Value, Parameter> places;
  int64_t scratchValues = 0; // a number each, until they have an offset
};

} // namespace kiln::cuda
