// SPDX-License-Identifier: Apache-2.0
//
// The steps of an entry, and where its tensors are stored meanwhile: the entry-point glue and the memory plan as data,
// for the manifest.
#pragma once

#include "compiler/dialect/KilnDialect.h"
#include "compiler/kernel/Workload.h"
#include "compiler/library/ShapeVariants.h"
#include "compiler/transforms/PlanMemory.h"
#include <map>
#include <string>
#include <vector>

namespace kiln {

/// A step of the memory plan. A loop has two steps, "loop" and "end", around those of its body.
struct ExecutionStep {
  std::string kind;                           // "kernel", "loop", "end", or the name of another op
  std::string kernel;                         // the kernel variant that serves the call at its largest extents
  std::string layer;                          // the scope in which it was traced: "h.{}.mlp.fc1"
  std::vector<std::string> operands, results; // "f32[tokens, 768]"
  double times = 1; // executions per call of the entry; for a loop, the iterations per execution
  Work work;        // work of one execution
  /// For ops that call no kernel, the bytes of the operands: exchanged between ranks, carried by a loop, or stored.
  double bytes = 0;
};

/// A buffer of the arena, after the states, for values that reuse the same memory.
struct PlannedBuffer {
  int64_t offset = 0, bytes = 0;
  int first = 0, last = 0;              // the first and the last step that use the buffer
  std::vector<std::string> values = {}; // "linear_2 f32[tokens, 384]": the values that are stored there
};

/// Returns a description such as "f32[2*batch*tokens, 768]".
std::string describeTensor(mlir::RankedTensorType type, llvm::ArrayRef<mlir::kiln::SymbolAttr> symbols);

/// Returns the steps of a call at these extents. Extents that are not given take their largest value. The rows of a
/// batch are divided evenly among the sequences.
std::vector<ExecutionStep> listSteps(mlir::func::FuncOp entry, const mlir::kiln::MemoryPlan &plan,
                                     const ShapeVariants &forms, const std::map<std::string, int64_t> &extents);

std::vector<PlannedBuffer> listBuffers(mlir::func::FuncOp entry, const mlir::kiln::MemoryPlan &plan);

} // namespace kiln
