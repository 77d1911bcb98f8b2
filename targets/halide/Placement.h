// SPDX-License-Identifier: Apache-2.0
//
// Placing Funcs: the pieces that the strategies share.
#pragma once

#include "targets/halide/Strategy.h"
#include "targets/halide/Structure.h"
#include "targets/halide/Translate.h"
#include "llvm/ADT/DenseSet.h"

namespace kiln::halide {

/// Vectorises `var`, whose extent is given: by `lanes`, or by the largest power of two that fits a smaller fixed
/// extent. The tail is guarded: nothing outside the extent is read or stored.
void vectorizeGuarded(Halide::Stage stage, Halide::Var var, const Halide::Expr &extent, int lanes);

/// Gives rows of the Func's memory, which is computed for the whole of its fixed innermost extent, at least one element
/// more. Halide takes a load behind the end of an allocation for a sign that a branch is never reached, and drops the
/// branch, even if only guarded lanes lie there: of 5 elements in vectors of 4 the last one would never be stored.
/// And it takes memory on the stack, be it less than a vector, to be aligned as a vector.
void padStorage(Halide::Func func, const Halide::Expr &extent, int lanes);

/// The same for the other dimensions, along which a reader's vectors may go; the extents are those of all, innermost
/// first. Undefined: only a part of the dimension is computed at a time, and its readers go along it one by one.
void padOuterStorage(Halide::Func func, const Exprs &extents);

/// The loop over blocks of rows.
inline const Halide::Var rowBlock("row_block");

/// The columns of tiles of a result, innermost first: the lanes of a vector, the vectors of a column, the columns.
struct ColumnLoops {
  Halide::Var lane{"lane"}, vector{"in_panel"}, column{"column"};
};

/// Splits the innermost dimension, whose extent is given, into columns of `width`, whole vectors; their vectors are
/// unrolled, and nothing outside the extent is stored.
ColumnLoops splitColumns(Halide::Func store, const Halide::Expr &extent, int64_t width, int lanes);

/// Gives memory to a Func of its own that is split so: as padStorage, for all vectors of the last panel, and
/// padOuterStorage.
void padColumns(Halide::Func store, const Exprs &extents, int64_t width, int lanes);

/// The rule of "m" and "n", a register tile of sums: they, a row of vectors and a broadcast fit the registers.
TuningRule registersOfTile(int64_t lanes, int64_t registers);

/// Row `row` of full tiles of `height` rows, for reading: behind the last one each stands for one of the tile before.
/// Of two rows that are the same one LLVM would see it, and share products instead of fusing them with the additions.
Halide::Expr rowOfFullTile(const Halide::Expr &row, const Halide::Expr &extent, int height);

/// The largest extent of the innermost reduction loop of a reduction.
int64_t innermostReduction(mlir::linalg::GenericOp op);

/// The most vectors of partial results: a single one waits for each sum.
inline constexpr int mostVectors = 4;

/// Reduces along the innermost reduction loop in up to `vectors` vectors of `lanes` partial results, which `placePart`
/// places. Does nothing for a reduction whose order matters.
void vectorizeReduction(const Stage &stage, int lanes, int vectors, llvm::function_ref<void(Halide::Func)> placePart);

/// Whether so many floats are added up, in any order, that their sum is one of sums: else roundings add up.
bool isLongSum(const Stage &stage);

/// What such a stage adds up from then on: the sums of parts, which are to be placed.
Halide::Func sumInParts(const Stage &stage);

/// Whether it adds up so many elements to so few results that workers should share out each sum: results are too few
/// for them, and memory for the sums of all parts is little compared with what is added up.
bool isSharedSum(const Stage &stage);

/// Computes the sums of parts, of `result`, at the root: parts are shared out, and a part is read from its first to its
/// last element.
void placeSharedParts(Translator &translator, Halide::Func parts, mlir::Value result, int lanes);

/// How work is cut for the workers. Small tasks share out what is small; few tasks keep what is large in long streams
/// (M-0404).
struct Tasks {
  int64_t elements = 16384; // of a task, at least
  int64_t most = 64;        // tasks
};

/// The parameters "task", of these values, and "tasks", without values that cannot matter for the kernel; and what a
/// point says of them.
SearchSpace taskParameters(mlir::func::FuncOp kernel, std::vector<int64_t> elements);
Tasks tasksOf(const SchedulePoint &point);

/// How much of dimension `outer`, of which each index has `inner` elements, is a task: a multiple of `multiple`.
/// Undefined if all of it always is one.
Halide::Expr taskExtent(const Output &output, unsigned outer, int64_t inner, const Tasks &tasks, int64_t multiple = 1);

/// Spreads the outer loops of an output over the workers; vectorises the innermost one, and goes along `rows` of the
/// next one side by side.
void scheduleStore(const Output &output, int lanes, const Tasks &tasks, int64_t rows = 1);

/// Computes the reductions, and what they read, in the loop `row` of `store`, the first output, which stores `columns`
/// columns of one row, whole panels; `reduced` is the other output. Its loops from `row` outwards must be those of
/// `store`; splitColumns() with panels for columns makes its inner ones.
void placePanels(Translator &translator, const PanelReductions &panels, Halide::Func store, Halide::Func reduced,
                 const Halide::Var &row, int64_t columns, int lanes);

/// The parameter "prefetch": how many bytes ahead a kernel asks for its streams, 0: not at all. Streams are the
/// results, the arguments of their shapes, and the tables in which rows are looked up. By default nothing is asked for
/// if all of them fit into the second cache.
TuningParameter prefetchParameter(mlir::func::FuncOp kernel, const MachineModel &machine);

/// Has the last loop over each stream ask for it so many bytes ahead; for an argument at least `elements`, for a table
/// at least `rows` ahead.
void prefetchStreams(Translator &translator, int64_t bytes, int64_t elements, int64_t rows);

/// Whether a parallel stage feeds a reduction that reads each element of it more than once, so that it must not be
/// inlined.
bool isReusedByReduction(mlir::linalg::GenericOp op);

/// Whether the stage is a result of the kernel from which stages that are not in `placed` follow. They must not compute
/// it again: it may have taken the memory of what it is computed from.
bool isReadBack(mlir::linalg::GenericOp op, const llvm::DenseSet<mlir::Operation *> &placed = {});

/// The fallback for ops that are not in `placed`: reductions, what they reuse and what is read back are computed at the
/// root, the rest is inlined.
void placeAtRoot(Translator &translator, const llvm::DenseSet<mlir::Operation *> &placed, int lanes);

} // namespace kiln::halide
