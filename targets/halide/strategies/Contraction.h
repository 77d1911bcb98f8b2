// SPDX-License-Identifier: Apache-2.0
//
// The strategy for GEMMs with many rows: the search space (ContractionSpace.cpp), the Funcs (ContractionFuncs.cpp) and
// their schedule (Contraction.cpp).
#pragma once

#include "targets/halide/Structure.h"
#include "targets/halide/strategies/Strategy.h"
#include "targets/halide/translate/Translator.h"

namespace kiln::halide {

/// A contraction of the kernel and its Funcs.
struct Tiled {
  Contraction shape;
  unsigned rowDim = 0; // Halide dimension of the rows in the output
  unsigned rank = 0;
  bool isFused = false;          // stored by the kernel's output, not by a separate Func
  Halide::Func packedA, packedB; // undefined: read in place
  Halide::Func words, groupSums; // a in words of the interleaved layout, if b has that, and the sums of groups, if b
                                 // has groups
  Halide::Func tile;             // partial sums of a block of k, in registers
  Halide::RDom reduction;        // reduction domain of the tile
  Halide::RDom within;           // reduction domain of a group's sum
  Halide::Func total;            // total of a tile's partial sums, on the stack; undefined for one, or with blocks of K
  Halide::Func panel;            // sum over the blocks of K and their partial sums, in memory; undefined without blocks
  Halide::RDom pieces;           // partial sums and, with a panel, blocks of K
  Halide::Func store;            // undefined if fused
  Exprs extents;                 // extents of the output, innermost first
  std::vector<Halide::Var> batchA, batchB;
};

/// The loops that a parallel loop splits into tasks.
enum class Split : int64_t { Columns = 0, Rows = 1, Both = 2 };

/// A schedule configuration of the search space.
struct ContractionSchedule {
  int tileRows = 0, tileColumns = 0;
  int unroll = 1;      // K iterations in the body of the inner loop
  int blockK = 0;      // 0: no blocks
  int partialSums = 1; // of a block, one after the other: shorter sums have a smaller rounding error
  int blockRows = 0;   // 0: no blocks
  int task = 1;        // column tiles of one task
  int prefetch = 0;    // prefetches per K iteration for the next panel; 0: none
  int ahead = 0;       // prefetch distance for rows of b, in K iterations; 0: no prefetch
  bool isPacked = true;
  bool isRowsOuter = false;
  Split split = Split::Columns;
};

/// Returns the search space of a kernel's contractions, which share their tile sizes.
SearchSpace contractionSpace(llvm::ArrayRef<Contraction> contractions, const MachineModel &machine);
/// Returns the shape-specialised variants of a kernel: for skinny GEMM, for low tiles, and for as many rows as need no
/// row blocks.
std::vector<ShapeVariant> contractionVariants(const Contraction &contraction, const MachineModel &machine);
ContractionSchedule readContractionSchedule(const ScheduleConfig &config);

/// Returns the size of the groups of K that are summed up separately and multiplied by their scales, as skinny_gemm
/// does. Batch-invariant and interleaved contractions do so for a weight with groups. 0: all of K is one sum.
int64_t productsOfSum(const Contraction &contraction);

/// Builds the Funcs of a contraction; returns an undefined Func after a diagnostic. `tiled.shape` and `tiled.isFused`
/// must be set.
Halide::Func buildContraction(Translator &translator, const ContractionSchedule &schedule, Tiled &tiled);

} // namespace kiln::halide
