// SPDX-License-Identifier: Apache-2.0
//
// Each output has one loop over blocks and one over threads, since grids and blocks of a launch have one dimension.
// The ends of rows are guarded; for blocks without such an end Halide makes code without guards.
#include "targets/cuda/halide/Schedule.h"

#include "compiler/dialect/Extents.h"
#include "targets/cuda/Kernel.h"

namespace kiln::cuda {

using namespace mlir;
using Halide::TailStrategy;
using Halide::Var;

namespace {

/// Threads along a row: 32 columns of f32 are a whole cache line.
constexpr int64_t lineColumns = 32;

/// Whether a result has several rows that are shorter than a cache line, so that the ends of rows would leave threads
/// idle.
bool hasShortRows(func::FuncOp kernel) {
  return llvm::any_of(kernel.getResultTypes(), [&](Type type) {
    SmallVector<AffineExpr> extents = mlir::kiln::getExtents(cast<RankedTensorType>(type));
    return extents.size() > 1 && largestValue(extents.back(), kernel) < lineColumns;
  });
}

class OutputSchedule {
public:
  OutputSchedule(const halide::Output &output, const ScheduleConfig &config)
      : func(output.func), rank(output.rank()), threads(int(config.at("threads"))), columns(int(config.at("columns"))),
        elements(int(config.at("elements"))) {}

  void run();

private:
  Var fuseFrom(unsigned dimension);

  Halide::Func func;
  unsigned rank;
  int threads, columns, elements;
};

/// Fuses all dimensions from this one outwards.
Var OutputSchedule::fuseFrom(unsigned dimension) {
  Var fused = halide::dimensionVar(dimension);
  for (unsigned i = dimension + 1; i < rank; ++i) {
    Var next("rows" + std::to_string(i));
    func.fuse(fused, halide::dimensionVar(i), next);
    fused = next;
  }
  return fused;
}

void OutputSchedule::run() {
  Var innermost("element"), column("column"), columnBlock("column_block"), thread("thread"), block("block");
  const bool isFlat = rank == 1 || columns == 1;
  const int wide = isFlat ? threads : std::min(columns, threads), rows = threads / wide;
  Var along = isFlat ? fuseFrom(0) : halide::dimensionVar(0);
  func.split(along, columnBlock, column, wide * elements, TailStrategy::GuardWithIf)
      .split(column, innermost, thread, wide);
  if (isFlat) {
    func.reorder(innermost, thread, columnBlock);
    block = columnBlock;
  } else {
    Var row("row"), rowBlock("row_block"), both("both");
    func.split(fuseFrom(1), rowBlock, row, rows, TailStrategy::GuardWithIf)
        .reorder(innermost, thread, row, columnBlock, rowBlock)
        .fuse(thread, row, both)
        .fuse(columnBlock, rowBlock, block);
    thread = both;
  }
  func.gpu_blocks(block).gpu_threads(thread).unroll(innermost);
}

} // namespace

void addGpuParameters(func::FuncOp kernel, SearchSpace &space) {
  space.push_back({"columns", {1, 8, 16, 32, 64, 128}, hasShortRows(kernel) ? 1 : lineColumns});
  space.push_back({"elements", {1, 2, 4, 8}, 1});
}

void scheduleForGpu(halide::Translator &translator, const ScheduleConfig &config) {
  for (const halide::Output &output : translator.outputs) {
    if (output.rank() == 0) {
      Halide::Func(output.func).gpu_single_thread();
      continue;
    }
    OutputSchedule(output, config).run();
  }
}

} // namespace kiln::cuda
