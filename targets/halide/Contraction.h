// SPDX-License-Identifier: Apache-2.0
//
// The strategy of contractions with many rows. Its parts: the search space (ContractionSpace.cpp), the Funcs
// (ContractionFuncs.cpp), and where they are computed (Contraction.cpp).
#pragma once

#include "targets/halide/Strategy.h"
#include "targets/halide/Structure.h"
#include "targets/halide/Translate.h"

namespace kiln::halide {

/// A contraction of the kernel and its Funcs.
struct Tiled {
  Contraction shape;
  unsigned rowDim = 0; // Halide dimension of the rows in the output
  unsigned rank = 0;
  bool isFused = false;          // stored by the kernel's output, not by a Func of its own
  Halide::Func packedA, packedB; // undefined: read in place
  Halide::Func words, groupSums; // of a, if the contraction has words; and if these have groups
  Halide::Func tile;             // sums of a part of a block, in registers
  Halide::RDom depth;            // of the tile's sums
  Halide::RDom within;           // of a group's sum
  Halide::Func total;            // of a tile's parts, on the stack; undefined for one part, or with blocks
  Halide::Func panel;            // sums of k blocks and their parts, in memory; undefined without blocks
  Halide::RDom pieces;           // parts and, with a panel, blocks
  Halide::Func store;            // undefined if fused
  Exprs extents;                 // of the output, innermost first
  std::vector<Halide::Var> batchA, batchB;
};

/// What a task of a parallel loop is.
enum class Split : int64_t { Columns = 0, Rows = 1, Both = 2 };

/// A point of the search space.
struct ContractionSchedule {
  int tileRows = 0, tileColumns = 0;
  int unroll = 1;     // steps of k in the body of the inner loop
  int blockDepth = 0; // 0: no blocks
  int parts = 1;      // sums of a block, one after the other: shorter ones round less
  int blockRows = 0;  // 0: no blocks
  int task = 1;       // column tiles of one task
  int prefetch = 0;   // requests of a step of k for the next panel; 0: none
  int ahead = 0;      // steps of k between asking for a row of b and reading it; 0: not asked for
  bool isPacked = true;
  bool isRowsOuter = false;
  Split split = Split::Columns;
};

/// The search space of a kernel's contractions, which share their tiles. `panel` is the width of the panels that are
/// reduced where their sums are; 0: none are.
SearchSpace contractionSpace(llvm::ArrayRef<Contraction> contractions, int64_t panel, const MachineModel &machine);
/// The forms of a kernel for fewer rows: few rows, and as many as do without blocks of rows.
std::vector<RowVariant> contractionVariants(const Contraction &contraction, const MachineModel &machine);
ContractionSchedule readContractionSchedule(const SchedulePoint &point);

/// How many products of an ordered contraction or of words are one sum, of a weight with groups: each sum is multiplied
/// by its scale, as few_rows does. 0: all of them are one sum.
int64_t productsOfSum(const Contraction &contraction);

/// The Funcs of a contraction; an undefined Func after a diagnostic. `tiled.shape` and `tiled.isFused` are set before.
Halide::Func buildContraction(Translator &translator, const ContractionSchedule &schedule, Tiled &tiled);

} // namespace kiln::halide
