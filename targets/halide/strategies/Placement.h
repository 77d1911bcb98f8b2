// SPDX-License-Identifier: Apache-2.0
//
// Placement of Funcs: helpers that the strategies share.
#pragma once

#include "targets/halide/Structure.h"
#include "targets/halide/strategies/Strategy.h"
#include "targets/halide/translate/Translator.h"
#include "llvm/ADT/DenseSet.h"

namespace kiln::halide {

/// Vectorises `var`, whose extent is given, by `lanes`, or by the largest power of two that fits a smaller fixed
/// extent. The tail is guarded: nothing outside the extent is read or stored.
void vectorizeGuarded(Halide::Stage stage, Halide::Var var, const Halide::Expr &extent, int lanes);

/// Pads the rows of the Func's storage by at least one element. The Func is computed for the whole of its fixed
/// innermost extent. Halide takes a load past the end of an allocation as a sign that a branch is never reached, and
/// drops the branch, even if only masked lanes are past the end: of 5 elements in vectors of 4 the last one would never
/// be stored. Halide also assumes that memory on the stack, even if smaller than a vector, is aligned as a vector.
void padStorage(Halide::Func func, const Halide::Expr &extent, int lanes);

/// Pads the other dimensions, along which a reader may be vectorised. The extents are those of all dimensions,
/// innermost first. An undefined extent means that only a part of the dimension is computed at a time, and that its
/// readers go along it one element at a time.
void padOuterStorage(Halide::Func func, const Exprs &extents);

/// The loop over blocks of rows.
inline const Halide::Var rowBlock("row_block");

/// The loops over the columns of a result, innermost first: the lanes of a vector, the vectors of a column, the
/// columns.
struct ColumnLoops {
  Halide::Var lane{"lane"}, vector{"in_panel"}, column{"column"};
};

/// Splits the innermost dimension, whose extent is given, into columns of `width`, which is a multiple of the vector
/// size. The vectors of a column are unrolled, and nothing outside the extent is stored.
ColumnLoops splitColumns(Halide::Func store, const Halide::Expr &extent, int64_t width, int lanes);

/// Pads the storage of a separate Func that is split by splitColumns(): padStorage() for all vectors of the last panel,
/// and padOuterStorage().
void padColumns(Halide::Func store, const Exprs &extents, int64_t width, int lanes);

/// Returns the rule for "m" and "n", the size of a register tile: accumulators, a row of vectors and a broadcast fit
/// the registers.
TuningRule registersOfTile(int64_t lanes, int64_t registers);

/// Returns the row to read for row `row` of full tiles of `height` rows: a row after the last one reads the row
/// `height` before it. If two rows of a tile were the same, LLVM would share their products instead of fusing them with
/// the additions.
Halide::Expr rowOfFullTile(const Halide::Expr &row, const Halide::Expr &extent, int height);

/// Returns the largest extent of the innermost reduction loop of a reduction.
int64_t innermostReduction(mlir::linalg::GenericOp op);

/// The most vectors of partial results. A single vector waits for the latency of each addition.
inline constexpr int mostVectors = 4;

/// Reduces along the innermost reduction loop in up to `vectors` vectors of `lanes` partial results, which `placePart`
/// places. Does nothing for a reduction whose order matters.
void vectorizeReduction(const Stage &stage, int lanes, int vectors, llvm::function_ref<void(Halide::Func)> placePart);

/// Whether the stage adds up so many floats, in any order, that it is split into partial sums to keep the rounding
/// error small.
bool isLongSum(const Stage &stage);

/// Splits such a stage, and returns the Func of its partial sums, which the caller places.
Halide::Func sumInParts(const Stage &stage);

/// Whether the stage adds up so many elements to so few results that the workers should share each sum (split-K): there
/// are too few results to occupy them, and the memory of the partial sums is little compared with the input.
bool isSharedSum(const Stage &stage);

/// Computes the partial sums of `result` at the root. The parts are distributed over the workers, and each part is read
/// sequentially.
void placeSharedParts(Translator &translator, Halide::Func parts, mlir::Value result, int lanes);

/// How work is split into tasks for the workers. Small tasks distribute small work; a limited number of tasks keeps
/// large work in long streams (M-0404).
struct Tasks {
  int64_t elements = 16384; // minimum elements of a task
  int64_t most = 64;        // maximum number of tasks
};

/// taskParameters() returns the parameters "task", with these values, and "tasks", without values that cannot matter
/// for the kernel. tasksOf() reads them from a schedule configuration.
SearchSpace taskParameters(mlir::func::FuncOp kernel, std::vector<int64_t> elements);
Tasks tasksOf(const ScheduleConfig &config);

/// Returns how many indices of dimension `outer`, each with `inner` elements, are a task: a multiple of `multiple`.
/// Undefined if the whole dimension is always one task.
Halide::Expr taskExtent(const Output &output, unsigned outer, int64_t inner, const Tasks &tasks, int64_t multiple = 1);

/// Distributes the outer loops of an output over the workers, vectorises the innermost one, and computes `rows`
/// iterations of the next one together.
void scheduleStore(const Output &output, int lanes, const Tasks &tasks, int64_t rows = 1);

/// Returns the parameter "prefetch": the prefetch distance in bytes for a kernel's streams, 0: no prefetch. Streams are
/// the results, the arguments of their shapes, and the tables from which rows are gathered. By default nothing is
/// prefetched if all of them fit the L2 cache.
TuningParameter prefetchParameter(mlir::func::FuncOp kernel, const MachineModel &machine);

/// Prefetches each stream in the last loop over it, `bytes` ahead: for an argument at least `elements`, for a table at
/// least `rows` ahead.
void prefetchStreams(Translator &translator, int64_t bytes, int64_t elements, int64_t rows);

/// Whether a parallel stage feeds a reduction that reads each element of it more than once, so that it must not be
/// inlined.
bool isReusedByReduction(mlir::linalg::GenericOp op);

/// Whether the stage is a result of the kernel that stages outside of `placed` read. They must not recompute it, since
/// it may have overwritten the memory of its operands.
bool isReadBack(mlir::linalg::GenericOp op, const llvm::DenseSet<mlir::Operation *> &placed = {});

/// Places the ops that are not in `placed`: reductions, what they reuse and what is read back are computed at the root,
/// the rest is inlined.
void placeAtRoot(Translator &translator, const llvm::DenseSet<mlir::Operation *> &placed, int lanes);

} // namespace kiln::halide
