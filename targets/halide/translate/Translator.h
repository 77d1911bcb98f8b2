// SPDX-License-Identifier: Apache-2.0
//
// Translates a kernel function of linalg ops to a Halide pipeline. For a generic: parallel loop -> Var, reduction loop
// -> RDom, indexing map -> arguments, arith and math op -> Expr. Halide dimension j of a tensor is its dimension rank -
// 1 - j, and every Func of rank r has the same pure variables d0 (innermost) .. d<r-1>, so that strategies can name
// them.
#pragma once

#include "compiler/dialect/KilnDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "targets/halide/Compat.h"
#include "targets/halide/Structure.h"
#include "targets/halide/translate/HalfFloats.h"
#include "targets/halide/translate/VectorFunctions.h"
#include "targets/halide/workarounds/Prefetch.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include <functional>
#include <vector>

namespace kiln::halide {

using Exprs = std::vector<Halide::Expr>;

/// Returns the pure variable of Halide dimension `dimension`.
Halide::Var dimensionVar(unsigned dimension);
/// Returns the indices in reverse order, innermost first.
Exprs reversed(Exprs exprs);

/// Returns `index`, or the last index of `extent` if it is larger: lanes past the end of a tensor read its last
/// element. If whole vectors may be past the end, Halide must not know; see hideBounds.
Halide::Expr heldBelow(const Halide::Expr &index, const Halide::Expr &extent);

/// Returns the value of an update over `domain`. Halide takes the loops of an update from the variables in its value.
/// If all loops have one iteration no index uses them, but a schedule still needs them.
Halide::Expr overDomain(const Halide::RDom &domain, const Halide::Expr &value);

/// The translation of a linalg.generic.
struct Stage {
  mlir::linalg::GenericOp op;
  std::vector<Halide::Func> funcs; // one per result; a reduction is one Func, a Tuple if it has several results
  Halide::RDom domain;             // reductions only; its dimension 0 is the last reduction loop
  bool isReduction = false;
};

/// Consecutive results of the same extents, stored by one Func.
struct Output {
  Halide::Func func;
  llvm::SmallVector<unsigned> results; // numbers of results
  Exprs extents;                       // innermost first
  llvm::SmallVector<int64_t> bounds;   // largest extents, innermost first
  unsigned rank() const { return extents.size(); }
};

class Translator {
public:
  /// Builds the Func for an op on behalf of a strategy; returns an undefined Func after a diagnostic.
  using Builder = std::function<Halide::Func(mlir::linalg::GenericOp)>;
  /// Returns the value of operand `number` (inputs, then inits) in the region.
  using Operands = llvm::function_ref<Halide::Expr(unsigned number)>;

  /// Halide receives the least values of the index arguments, but the largest value only if it is 1. From wide ranges
  /// its simplifier computes sizes in bytes in 32 bits, takes an overflow for an access past an allocation, and takes
  /// such an access for code that never runs.
  Translator(mlir::func::FuncOp kernel, llvm::StringRef symbol);

  /// Must be called before run().
  void setBuilder(mlir::Operation *op, Builder builder) { builders[op] = std::move(builder); }
  /// Clamps reads of arguments by `op` whose index depends on one of these loops to the extent: the strategy computes
  /// past it.
  void setPadded(mlir::Operation *op, llvm::ArrayRef<unsigned> loops) { padded[op].assign(loops.begin(), loops.end()); }

  /// Makes reads of that operand by `op` leave out the scale of its storage format: the builder multiplies sums by it.
  void setUnscaled(mlir::Operation *op, unsigned number) { unscaled.insert({op, number}); }

  /// Translates the body. Emits a diagnostic at the op that has no translation.
  mlir::LogicalResult run();

  VectorFunctions vectorFunctions;  // input: the functions that may be used
  bool usesVectorFunctions = false; // output: whether any are used
  bool keepsLoops = false;          // LLVM must neither unroll nor vectorise the scheduled loops
  const bool isBatchInvariant;      // kiln.batch_invariant: batch-invariant

  mlir::func::FuncOp kernel;
  std::vector<Halide::Argument> arguments; // index arguments, then tensors
  Exprs symbols;                           // the index arguments
  llvm::MapVector<mlir::Operation *, Stage> stages;
  std::vector<StreamPrefetch> prefetches; // requested by strategies
  std::vector<Output> outputs;

  /// Building blocks for strategies. Numbers of arguments count tensors only.
  Halide::Func argument(unsigned number);
  Halide::Expr read(mlir::Value tensor, const Exprs &indices);
  /// Returns the number of elements along K that share a scale, for a storage format with groups; 0 without groups.
  int64_t groupOf(mlir::linalg::GenericOp op, unsigned number) const;
  /// Returns the scale that `op` leaves out of operand `number`, which is set unscaled; undefined if its storage format
  /// has none, or has minimums, with which numbers are scaled as they are read. With groups, it is the scale of the
  /// element at `loops`.
  Halide::Expr scaleOf(mlir::linalg::GenericOp op, unsigned number, const Exprs &loops);
  /// For a contraction with the interleaved (VNNI) layout; the loop over k in `loops` counts words. interleavedRow()
  /// returns a word of a row: two 16-bit numbers, four 8-bit numbers (VectorFunctions::hasSignedBytes), or, for a
  /// weight of i4, four unchanged 8-bit numbers, with two such words per word of the weight. interleavedWeight()
  /// returns a word of the weight. addProducts() returns a sum plus the products of both.
  Halide::Expr interleavedRow(const Contraction &contraction, const Exprs &loops);
  Halide::Expr interleavedWeight(const Contraction &contraction, const Exprs &loops);
  Halide::Expr addProducts(const Contraction &contraction, const Halide::Expr &sum, const Exprs &rows,
                           const Halide::Expr &weight);
  /// Returns the value of a group whose products were summed up with i4 factors of 0 to 15: subtracts the zero point
  /// times `rowSum`, the sum of the row's numbers, and applies the scale. `loops` has an element of the group.
  Halide::Expr scaledGroup(const Contraction &contraction, const Halide::Expr &sum, const Halide::Expr &rowSum,
                           const Exprs &loops);
  /// Applies to a sum what was left out: the scale of its output, which reads of b that are set unscaled omit, and,
  /// with words, the correction for the 128 that was added to the numbers of the row.
  Halide::Expr scaledSum(const Contraction &contraction, Halide::Expr sum, const Exprs &loops);
  Halide::Expr extent(mlir::Value tensor, unsigned dimension);
  Halide::Expr loopExtent(mlir::linalg::GenericOp op, unsigned loop);
  Exprs operandIndices(mlir::linalg::GenericOp op, unsigned number, const Exprs &loops);
  Halide::Expr readOperand(mlir::linalg::GenericOp op, unsigned number, const Exprs &loops);
  /// readWide() is the same for a copy that is read many times: an f16 or bf16 is widened when it is copied, and where
  /// the region would do so.
  Halide::Expr readWide(mlir::linalg::GenericOp op, unsigned number, const Exprs &loops);
  Halide::Expr wide(mlir::Value tensor, const Halide::Expr &element);
  /// Returns the loops' variables as in the default translation; reduction loops come from `domain`.
  Exprs loopVariables(mlir::linalg::GenericOp op, const Halide::RDom &domain);
  /// Returns the yielded values; empty after a diagnostic.
  Exprs body(mlir::linalg::GenericOp op, const Exprs &loops, Operands operands);
  /// Like body(), for any values of the region.
  Exprs evaluate(mlir::linalg::GenericOp op, mlir::ValueRange wanted, const Exprs &loops, Operands operands);
  std::string name(llvm::StringRef what);
  /// Requests prefetches of an operand that is an argument (workarounds/Prefetch.h).
  void prefetch(mlir::linalg::GenericOp op, unsigned operand, int64_t advance, int lines = 0,
                llvm::StringRef rowLoop = "");

private:
  struct Source {
    Halide::Func func;
    int element = -1;
    bool isArgument = false;
    bool isBoolean = false;
    /// Parts of a weight's storage format; `thirds` are zero points, outer scales, or offsets.
    Halide::Func scales = {}, thirds = {};
  };
  /// The position of an element of a tiled weight: within its tile, along K, and the number of its tile.
  struct Place {
    Halide::Expr inTile, kIndex, tile;
  };

  mlir::LogicalResult translateArguments();
  mlir::LogicalResult translate(mlir::linalg::FillOp op);
  mlir::LogicalResult translate(mlir::linalg::GenericOp op);
  mlir::LogicalResult translateParallel(mlir::linalg::GenericOp op);
  mlir::LogicalResult translateReduction(mlir::linalg::GenericOp op);
  mlir::LogicalResult translateOutputs(mlir::func::ReturnOp op);
  Halide::Expr translateExtract(mlir::tensor::ExtractOp op, Exprs indices);
  Halide::Expr scalar(mlir::Value value);
  Halide::Expr affine(mlir::AffineExpr expr, const Exprs &dims, const Exprs &symbols);
  Exprs extents(mlir::RankedTensorType type);
  mlir::LogicalResult translateTensor(mlir::BlockArgument argument);
  Halide::Expr readStored(mlir::Value tensor, const Exprs &indices, bool isScaled);
  Halide::Expr readTiled(const Source &source, mlir::kiln::TiledAttr layout, const Place &place, bool isScaled);
  Halide::Expr widenSmallFloat(const Halide::Expr &bits, int width, int fraction);
  Halide::Expr scaleAt(const Source &source, mlir::kiln::StorageAttr storage, const Place &place);
  Halide::Expr widen(mlir::Type type, const Halide::Expr &bits);
  Halide::Expr narrow(mlir::Type type, const Halide::Expr &number);
  Halide::Expr widenHalf(const Halide::Expr &bits);
  Halide::Expr readNumber(const Source &source, mlir::kiln::StorageAttr storage, const Place &place);
  Halide::Expr floatOfWord(const Halide::Expr &word, const Halide::Expr &k, bool isSigned);
  Halide::Expr floatOfSixBits(const Source &source, const Place &place);
  Halide::Expr outerAt(const Source &source, mlir::kiln::StorageAttr storage, const Place &place);
  Halide::Expr minusMinimum(const Source &source, mlir::kiln::StorageAttr storage, const Place &place,
                            const Halide::Expr &number);
  Halide::Expr translateScalar(mlir::Operation *op, const Exprs &operands);

  llvm::DenseMap<mlir::Value, Source> sources;
  llvm::DenseMap<mlir::Value, Halide::Expr> scalars;
  llvm::DenseMap<mlir::Operation *, Builder> builders;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<unsigned>> padded;
  llvm::DenseSet<mlir::Operation *> madeOfKnown;
  llvm::DenseSet<std::pair<mlir::Operation *, unsigned>> unscaled;
  std::string prefix;
};

/// Returns the Halide type of a tensor's elements; a handle type if there is none. f16 and bf16 are their bits
/// (HalfFloats.h).
Halide::Type elementType(mlir::Type type);

/// Returns the type of a part's elements in memory (compiler/dialect/StoredParts.h): booleans are bytes.
Halide::Type partElement(mlir::RankedTensorType tensor, unsigned part);
/// Returns the suffix of an argument's name for one of its parts: empty for the first part.
std::string partSuffix(unsigned part);

/// Returns `yes` or `no`, and preserves NaN by choosing between their bits. Halide promises that a select of floats is
/// not NaN, so LLVM turns a select by a comparison of the two into a maximum or minimum, which treats NaN differently.
Halide::Expr choose(const Halide::Expr &condition, const Halide::Expr &yes, const Halide::Expr &no);

/// Translates one arith or math op on translated operands. `isStrict`: the result is neither reassociated nor
/// contracted, and NaN and infinities are preserved. Undefined: there is no translation.
Halide::Expr translateScalarOp(mlir::Operation *op, const Exprs &operands, bool isStrict);

} // namespace kiln::halide
