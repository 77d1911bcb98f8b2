// SPDX-License-Identifier: Apache-2.0
//
// A kernel function of linalg ops as a Halide pipeline. Generic: parallel loop -> Var, reduction loop -> RDom, indexing
// map -> arguments, arith and math op -> Expr. Halide dimension j of a tensor is its dimension rank - 1 - j, and every
// Func of rank r has the same pure variables d0 (innermost) .. d<r-1>, so that strategies can name them.
#pragma once

#include "Halide.h"
#include "compiler/dialect/KilnDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "targets/halide/Prefetch.h"
#include "targets/halide/ShortFloats.h"
#include "targets/halide/Structure.h"
#include "targets/halide/VectorFunctions.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include <functional>
#include <vector>

namespace kiln::halide {

using Exprs = std::vector<Halide::Expr>;

/// The pure variable of Halide dimension `dimension`.
Halide::Var dimensionVar(unsigned dimension);
/// Indices of the other order, innermost first.
Exprs reversed(Exprs exprs);

/// `index`, or the last one of `extent`: lanes beyond the end of a tensor read its last element. Where whole vectors
/// may lie beyond it, Halide must not find out: see hideBounds.
Halide::Expr heldBelow(const Halide::Expr &index, const Halide::Expr &extent);

/// The value of an update over `domain`. Halide takes the loops of an update from the variables in it: none is left
/// where all have one step, so that no index has them, but a schedule wants to see them.
Halide::Expr overDomain(const Halide::RDom &domain, const Halide::Expr &value);

/// A linalg.generic as a Func.
struct Stage {
  mlir::linalg::GenericOp op;
  std::vector<Halide::Func> funcs; // one a result; a reduction is one Func, a Tuple if it has several results
  Halide::RDom domain;             // reductions only; its dimension 0 is the last reduction loop
  bool isReduction = false;
};

/// Consecutive results of the same extents, stored by one Func.
struct Output {
  Halide::Func func;
  llvm::SmallVector<unsigned> results; // numbers
  Exprs extents;                       // innermost first
  llvm::SmallVector<int64_t> bounds;   // largest extents, innermost first
  unsigned rank() const { return extents.size(); }
};

class Translator {
public:
  /// Builds the Func for an op in a strategy's own way; an undefined Func after a diagnostic.
  using Builder = std::function<Halide::Func(mlir::linalg::GenericOp)>;
  /// The value of operand `number` (inputs, then inits) in the region.
  using Operands = llvm::function_ref<Halide::Expr(unsigned number)>;

  /// Halide is told the least values of the index arguments, the largest only of one that has a single value: from wide
  /// ranges its simplifier counts bytes in 32 bits, takes what overflows for accesses beyond an allocation, and those
  /// for code that never runs.
  Translator(mlir::func::FuncOp kernel, llvm::StringRef symbol);

  /// To be called before run().
  void setBuilder(mlir::Operation *op, Builder builder) { builders[op] = std::move(builder); }
  /// Reads of arguments by `op` whose index is one of these loops are clamped to the extent: the strategy computes past
  /// it.
  void setPadded(mlir::Operation *op, llvm::ArrayRef<unsigned> loops) { padded[op].assign(loops.begin(), loops.end()); }

  /// Reads of that operand by `op` leave out the scale of its storage: the builder multiplies sums by it.
  void setUnscaled(mlir::Operation *op, unsigned number) { unscaled.insert({op, number}); }

  /// Translates the body. Emits a diagnostic at the op that has no translation.
  mlir::LogicalResult run();

  VectorFunctions vectorFunctions;  // given; those that may be used
  bool usesVectorFunctions = false; // whether any are
  bool keepsLoops = false;          // LLVM leaves loops as they are scheduled: it neither unrolls nor vectorises them
  const bool isOrdered;             // kiln.ordered

  mlir::func::FuncOp kernel;
  std::vector<Halide::Argument> arguments; // index arguments, then tensors
  Exprs symbols;                           // the index arguments
  llvm::MapVector<mlir::Operation *, Stage> stages;
  std::vector<StreamPrefetch> prefetches; // what strategies want
  std::vector<Output> outputs;

  /// Pieces for strategies. Numbers of arguments count tensors only.
  Halide::Func argument(unsigned number);
  Halide::Expr read(mlir::Value tensor, const Exprs &indices);
  /// The elements of the depth that have one scale, of a storage with groups; 0: there are none.
  int64_t groupOf(mlir::linalg::GenericOp op, unsigned number) const;
  /// The factor that `op` leaves out of operand `number`, which is set unscaled; undefined if its storage has none.
  /// With groups, that of the element that `loops` have.
  Halide::Expr scaleOf(mlir::linalg::GenericOp op, unsigned number, const Exprs &loops);
  /// Of a contraction of words, at the word that the loop over k has, with `loops` of the op. That of a row: two
  /// numbers of 16 bits, four of eight (VectorFunctions::hasSignedBytes), or, for a weight of i4, four as they are, of
  /// which two are a word of the weight. That of the weight. And a sum with their products.
  Halide::Expr wordOfRow(const Contraction &contraction, const Exprs &loops);
  Halide::Expr wordOfWeight(const Contraction &contraction, const Exprs &loops);
  Halide::Expr addProducts(const Contraction &contraction, const Halide::Expr &sum, const Exprs &rows,
                           const Halide::Expr &weight);
  /// The products of a group, which were summed up as 0 to 15 times the numbers of the row, whose sum is `rowSum`, as
  /// what they stand for. `loops` has an element of the group.
  Halide::Expr scaledGroup(const Contraction &contraction, const Halide::Expr &sum, const Halide::Expr &rowSum,
                           const Exprs &loops);
  /// A sum with what was left out: the scale of its output, which reads of b that are set unscaled have not, and of
  /// whole numbers, if there are words, what the 128 added to them.
  Halide::Expr scaledSum(const Contraction &contraction, Halide::Expr sum, const Exprs &loops);
  Halide::Expr extent(mlir::Value tensor, unsigned dimension);
  Halide::Expr loopExtent(mlir::linalg::GenericOp op, unsigned loop);
  Exprs operandIndices(mlir::linalg::GenericOp op, unsigned number, const Exprs &loops);
  Halide::Expr readOperand(mlir::linalg::GenericOp op, unsigned number, const Exprs &loops);
  /// The same for a copy that many read: an f16 or bf16 is widened on its way there, and where the region does so.
  Halide::Expr readWide(mlir::linalg::GenericOp op, unsigned number, const Exprs &loops);
  Halide::Expr wide(mlir::Value tensor, const Halide::Expr &element);
  /// The loops' variables as the default translation has them; reduction loops come from `domain`.
  Exprs loopVariables(mlir::linalg::GenericOp op, const Halide::RDom &domain);
  /// The yielded values; empty after a diagnostic.
  Exprs body(mlir::linalg::GenericOp op, const Exprs &loops, Operands operands);
  /// The same for any values of the region.
  Exprs evaluate(mlir::linalg::GenericOp op, mlir::ValueRange wanted, const Exprs &loops, Operands operands);
  std::string name(llvm::StringRef what);
  /// Wants requests for an operand that is an argument (Prefetch.h).
  void prefetch(mlir::linalg::GenericOp op, unsigned operand, int64_t advance, int lines = 0,
                llvm::StringRef rowLoop = "");

private:
  struct Source {
    Halide::Func func;
    int element = -1;
    bool isArgument = false;
    bool isBoolean = false;
    Halide::Func scales = {}, zeros = {}; // of a weight's storage
  };
  /// Where an element of a tiled weight lies: in its tile, along the depth, and in which tile.
  struct Place {
    Halide::Expr inTile, depth, tile;
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
  Halide::Expr scaleAt(const Source &source, mlir::kiln::StorageAttr storage, const Place &place);
  Halide::Expr widen(mlir::Type type, const Halide::Expr &bits);
  Halide::Expr narrow(mlir::Type type, const Halide::Expr &number);
  Halide::Expr floatOfWord(const Halide::Expr &word, const Halide::Expr &k);
  Halide::Expr translateScalar(mlir::Operation *op, const Exprs &operands);

  llvm::DenseMap<mlir::Value, Source> sources;
  llvm::DenseMap<mlir::Value, Halide::Expr> scalars;
  llvm::DenseMap<mlir::Operation *, Builder> builders;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<unsigned>> padded;
  llvm::DenseSet<mlir::Operation *> madeOfKnown;
  llvm::DenseSet<std::pair<mlir::Operation *, unsigned>> unscaled;
  std::string prefix;
};

/// The Halide type of a tensor's elements; handle type if there is none. f16 and bf16 are their bits (ShortFloats.h).
Halide::Type elementType(mlir::Type type);

/// The type of a part's elements in memory (compiler/dialect/StoredParts.h): booleans are bytes.
Halide::Type partElement(mlir::RankedTensorType tensor, unsigned part);
/// What is behind the name of an argument for its parts: nothing for the first one.
std::string partSuffix(unsigned part);

/// `yes` or `no`, NaN or not. Of a choice between floats Halide promises that it is not NaN, by which LLVM takes one by
/// a comparison of the two for their maximum or minimum, whose NaN is another. Of their bits it promises nothing.
Halide::Expr choose(const Halide::Expr &condition, const Halide::Expr &yes, const Halide::Expr &no);

/// One arith or math op on translated operands; strict: neither reassociated nor contracted, NaN and infinities kept.
/// Undefined: no translation.
Halide::Expr translateScalarOp(mlir::Operation *op, const Exprs &operands, bool isStrict);

} // namespace kiln::halide
