// SPDX-License-Identifier: Apache-2.0
//
// What strategies ask of a kernel's linalg ops. No Halide here.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <optional>

namespace kiln::halide {

/// out[batch, m, n] += a[batch, m, k] * b[batch, n, k] with n the innermost dimension of the output. Numbers are loops
/// and operands.
struct Contraction {
  mlir::linalg::GenericOp op;
  unsigned a = 0, b = 1;
  unsigned n = 0;
  std::optional<unsigned> m;             // the innermost loop that only a has
  llvm::SmallVector<unsigned> batch;     // all other parallel loops
  llvm::SmallVector<unsigned> reduction; // in loop order
  std::optional<unsigned> scale;         // an operand that multiplies each element of b
  int64_t tile = 0;                      // of b's stored layout along n; 0: dense, or tiles along k
  int64_t word = 0;  // of whole numbers in both: elements of the depth that b has side by side; else 0
  int64_t group = 0; // and of so many the sum is multiplied by a scale of their own; 0: of all

  /// What accumulators of words are: i32.
  bool hasWords() const { return word > 0; }
  /// Whether they are until all of the depth is summed up.
  bool hasWholeSums() const { return hasWords() && group == 0; }

  /// The element type of the sums.
  mlir::Type sumType() const;
};

/// The op as a contraction whose accumulators start from zero. `mayScale`: its b may be whole numbers times a scale.
std::optional<Contraction> asContraction(mlir::linalg::GenericOp op, bool mayScale = false);

/// That of the kernel, if it has just one.
std::optional<Contraction> onlyContraction(mlir::func::FuncOp kernel);

/// Checks what every later step relies on: bounds of the index arguments, extents of every tensor, layouts of weights
/// that are not interleaved. Emits a diagnostic.
mlir::LogicalResult verifyKernel(mlir::func::FuncOp kernel);

/// The widest type of what the kernel's ops compute, the values on the way to their results among it.
mlir::Type widestElement(mlir::func::FuncOp kernel);

/// Whether the kernel is kiln.ordered: then no parameter of a strategy may change in which order a sum is added up.
bool isOrdered(mlir::Operation *inKernel);

/// Bytes of so many elements of a tensor, as they are stored.
int64_t bytesOf(mlir::Value tensor, int64_t elements);

/// The largest value of an extent in the kernel.
int64_t largestValue(mlir::AffineExpr extent, mlir::Operation *inKernel);

/// The static extent of a loop; mlir::ShapedType::kDynamic at run time.
int64_t staticExtent(mlir::linalg::GenericOp op, unsigned loop);

/// That of a contraction's only reduction loop; kDynamic for several ones too.
int64_t staticDepth(const Contraction &contraction);

/// The steps of its loop over k: words, or elements of the depth.
int64_t staticSteps(const Contraction &contraction);

/// How many numbers are in a word of a row; a step has as many of these as make a word of b.
int64_t numbersOfRowWord(const Contraction &contraction);
int64_t rowWordsOfStep(const Contraction &contraction);

/// Bytes of so many columns of b in one step.
int64_t bytesOfStep(const Contraction &contraction, int64_t columns);

/// The largest value of a loop's extent, with the kernel's bounds.
int64_t largestExtent(mlir::linalg::GenericOp op, unsigned loop);

/// Its smallest value, and the index argument of the kernel that it is, if it is one.
int64_t smallestExtent(mlir::linalg::GenericOp op, unsigned loop);
std::optional<unsigned> symbolOfExtent(mlir::linalg::GenericOp op, unsigned loop);

/// Whether every use of the op's first result, up to the kernel's return, is element by element at the same indices,
/// and all results of the kernel have its extents.
bool hasPointwiseUses(mlir::linalg::GenericOp op);

/// What the rows of a contraction, with its epilogue the first result of a kernel, are reduced to for the other
/// results: values for each panel of columns, which are those of the weight's stored tiles.
struct PanelReductions {
  int64_t width = 0;
  llvm::SmallVector<mlir::linalg::GenericOp> ops; // reductions, and what is computed of them, in order
};

/// Those of the contraction, if its kernel returns nothing else.
std::optional<PanelReductions> panelReductions(const Contraction &contraction);

/// For every stage and each of its dimensions the dimension of the kernel's results with the same index.
class Alignment {
public:
  explicit Alignment(mlir::func::FuncOp kernel);
  /// -1: none or several; -2: nothing uses the dimension.
  int get(mlir::Value value, unsigned dimension) const;

private:
  void merge(mlir::Value value, unsigned dimension, int with);
  void visit(mlir::linalg::GenericOp op);

  llvm::DenseMap<std::pair<mlir::Value, unsigned>, int> table;
};

/// Whether all results of the kernel have one shape.
bool hasOneResultShape(mlir::func::FuncOp kernel);

/// Whether an operand's innermost index, in an ordered kernel that of the operation's last axis, depends on a reduction
/// loop.
bool readsAlongReduction(mlir::linalg::GenericOp op);

/// The combining op of a reduction with one result if it is one that may be reordered; null otherwise.
mlir::Operation *reorderableCombiner(mlir::linalg::GenericOp op);

/// Generic ops that use the value, in order.
llvm::SmallVector<mlir::linalg::GenericOp> genericUsers(mlir::Value value);

} // namespace kiln::halide
