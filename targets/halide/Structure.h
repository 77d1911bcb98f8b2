// SPDX-License-Identifier: Apache-2.0
//
// What strategies need to know of a kernel's linalg ops. This file is independent of Halide.
#pragma once

#include "compiler/kernel/Contraction.h"
#include "compiler/kernel/KernelFunction.h"
#include "compiler/kernel/RowReduction.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <optional>

namespace kiln::halide {

/// out[outer, m, n] += a[outer, m, k] * b[outer, n, k] with n the innermost dimension of the output, as schedules tile
/// it. The members are numbers of loops.
struct Contraction : ::kiln::Contraction {
  unsigned n = 0;
  std::optional<unsigned> m = std::nullopt; // the innermost parallel loop that only a depends on
  llvm::SmallVector<unsigned> outer = {};   // all other parallel loops, innermost first
  int64_t tile = 0;                         // tile size of b's stored layout along n; 0: dense, or tiled along k
  int64_t interleave = 0; // for integers: elements along K that a word of b interleaves (VNNI); else 0
  int64_t group = 0;      // with words: elements along K that share a scale; 0: one scale for all

  /// Whether b has the interleaved (VNNI) layout, so that its accumulators are i32.
  bool isVnni() const { return interleave > 0; }
  /// Whether the sums stay i32 over all of K.
  bool hasIntegerSums() const { return isVnni() && group == 0; }
};

/// Returns the op as a contraction whose accumulators start from zero, if it is one. `mayScale`: b may be integers
/// times a scale.
std::optional<Contraction> asContraction(mlir::linalg::GenericOp op, bool mayScale = false);

/// Returns the kernel's contraction, if it has exactly one.
std::optional<Contraction> onlyContraction(mlir::func::FuncOp kernel);

/// Checks the preconditions of all later stages: bounds of the index arguments, extents of every tensor, and layouts of
/// weights for which code is generated. Emits a diagnostic.
mlir::LogicalResult verifyKernel(mlir::func::FuncOp kernel);

/// Returns the widest element type that the kernel's ops compute, including intermediate values.
mlir::Type widestElement(mlir::func::FuncOp kernel);

/// Returns the bytes of `elements` elements of a tensor in memory.
int64_t bytesOf(mlir::Value tensor, int64_t elements);

/// Returns the largest value of an extent in the kernel.
int64_t largestValue(mlir::AffineExpr extent, mlir::Operation *inKernel);

/// Returns the static extent of a loop; mlir::ShapedType::kDynamic for a dynamic dimension.
int64_t staticExtent(mlir::linalg::GenericOp op, unsigned loop);

/// Returns K, the static extent of a contraction's only reduction loop; kDynamic also for several reduction loops.
int64_t staticK(const Contraction &contraction);

/// Returns the number of K iterations: words, or elements of K without words.
int64_t staticSteps(const Contraction &contraction);

/// rowInterleave() returns the number of elements in a word of a row, rowInterleavesPerStep() the number of such words
/// that a K iteration multiplies by one word of b.
int64_t rowInterleave(const Contraction &contraction);
int64_t rowInterleavesPerStep(const Contraction &contraction);

/// Returns the bytes of `columns` columns of b in one K iteration.
int64_t bytesOfStep(const Contraction &contraction, int64_t columns);

/// Returns the largest value of a loop's extent, within the kernel's bounds.
int64_t largestExtent(mlir::linalg::GenericOp op, unsigned loop);

/// smallestExtent() returns the smallest value of a loop's extent, symbolOfExtent() the number of the kernel's index
/// argument that the extent is, if it is one.
int64_t smallestExtent(mlir::linalg::GenericOp op, unsigned loop);
std::optional<unsigned> symbolOfExtent(mlir::linalg::GenericOp op, unsigned loop);

/// Whether every use of the op's first result, up to the kernel's return, is element by element at the same indices,
/// and all results of the kernel have its extents.
bool hasPointwiseUses(mlir::linalg::GenericOp op);

/// Maps each dimension of every stage to the dimension of the kernel's results with the same index.
class Alignment {
public:
  explicit Alignment(mlir::func::FuncOp kernel);
  /// Returns the dimension; -1: none or several; -2: nothing uses the dimension.
  int get(mlir::Value value, unsigned dimension) const;

private:
  void merge(mlir::Value value, unsigned dimension, int with);
  void visit(mlir::linalg::GenericOp op);

  llvm::DenseMap<std::pair<mlir::Value, unsigned>, int> table;
};

/// Whether all results of the kernel have one shape.
bool hasOneResultShape(mlir::func::FuncOp kernel);

/// Whether an operand's innermost index, or in a batch-invariant kernel the index of the operation's last axis, depends
/// on a reduction loop.
bool readsAlongReduction(mlir::linalg::GenericOp op);

} // namespace kiln::halide
