// SPDX-License-Identifier: Apache-2.0
//
// What an entry does, step by step, and where its tensors are meanwhile: the host function and the memory plan as data,
// for the manifest.
#pragma once

#include "compiler/dialect/KilnDialect.h"
#include "compiler/emit/RowVariants.h"
#include "compiler/schedule/Workload.h"
#include "compiler/transforms/PlanMemory.h"
#include <map>
#include <string>
#include <vector>

namespace kiln {

/// A step of the memory plan. A loop has two, "loop" and "end", with those of its body between them.
struct ExecutionStep {
  std::string kind;                           // "kernel", "loop", "end", or the name of an op of the host function
  std::string kernel;                         // the function that serves the call at its largest extents
  std::string layer;                          // where it was traced: "h.{}.mlp.fc1"
  std::vector<std::string> operands, results; // "f32[tokens, 768]"
  double times = 1;                           // in a call of the entry; of a loop: how often its body runs each time
  Work work;                                  // of one time
  double bytes = 0; // of the operands, without a kernel: that ranks exchange, that a loop carries, that is stored
};

/// A buffer of the arena, behind the states, for values that follow each other in place.
struct PlannedBuffer {
  int64_t offset = 0, bytes = 0;
  int first = 0, last = 0;              // steps
  std::vector<std::string> values = {}; // "linear_2 f32[tokens, 384]": what writes each
};

/// "f32[2*batch*tokens, 768]"
std::string describeTensor(mlir::RankedTensorType type, llvm::ArrayRef<mlir::kiln::SymbolAttr> symbols);

/// The steps of a call at these extents; those that are not given are the largest. Of a batch the rows are shared out
/// evenly among the sequences.
std::vector<ExecutionStep> listSteps(mlir::func::FuncOp entry, const mlir::kiln::MemoryPlan &plan,
                                     const RowVariants &forms, const std::map<std::string, int64_t> &extents);

std::vector<PlannedBuffer> listBuffers(mlir::func::FuncOp entry, const mlir::kiln::MemoryPlan &plan);

} // namespace kiln
