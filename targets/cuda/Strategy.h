// SPDX-License-Identifier: Apache-2.0
//
// How the steps of a kernel become launches. Each step is done by the first strategy that matches it, which may take
// steps behind it into its launch; loops matches all.
#pragma once

#include "targets/cuda/Placement.h"
#include "targets/cuda/Plan.h"
#include "targets/cuda/tile/Builder.h"
#include "targets/target.h"

namespace kiln::cuda {

/// Dynamic shared memory of a block that each GPU since 8.0 has, in bytes, and the multiprocessors of the first of
/// them.
constexpr int64_t leastSharedLimit = 99 << 10, leastMultiprocessors = 108;

/// A step and what is around it, which outlive its strategy.
struct StepContext {
  mlir::func::FuncOp kernel;
  const Placement &placement;
  const Step &step;
  size_t number = 0; // of the step among the placement's
};

/// What a block takes of a GPU, by the schedule alone, before there is code.
struct BlockNeeds {
  int64_t threads = 0;
  int64_t registers = 0; // of a thread; an estimate, since the driver's assembler decides
  int64_t sharedBytes = 0;
  double sharedTraffic = 0; // bytes that are read of shared memory for a fused multiply-add
  int64_t mmaBytes = 0;     // of an element that tensor cores multiply; 0: CUDA cores do
};

class StepStrategy {
public:
  virtual ~StepStrategy() = default;

  /// "attention", "contraction", "few_rows", "rows", "loops".
  virtual llvm::StringRef name() const = 0;

  /// How many steps it does, from its own on.
  virtual size_t numSteps() const { return 1; }

  /// What those store by the placement and it does not: what no other step reads.
  virtual llvm::ArrayRef<mlir::Value> unstored() const { return {}; }

  /// A parameter holds for all steps of the kernel that have one of its name; their values are the same.
  virtual SearchSpace searchSpace() const = 0;

  /// Of its largest blocks. None: not known, so that no GPU is said to have no room for them.
  virtual std::optional<BlockNeeds> needs(const SchedulePoint &) const { return std::nullopt; }
  /// The same of its mapped form. None: there is none.
  virtual std::optional<BlockNeeds> mappedNeeds(const SchedulePoint &) const { return std::nullopt; }

  /// Keys of its parameters that are without effect on a GPU of this capability, since the form that they are of is not
  /// launched there.
  virtual llvm::SmallVector<std::string> idleParameters(int64_t /*capability*/) const { return {}; }

  /// Appends functions and launches. Emits a diagnostic at what there is no code for.
  virtual mlir::LogicalResult build(tile::Builder &b, const SchedulePoint &point, DevicePlan &plan) const = 0;

  /// Gives its launches, those from `first` on, their mapped form, if they have one, in a module for sm_90a.
  virtual mlir::LogicalResult buildMapped(tile::Builder & /*b*/, size_t /*first*/, const SchedulePoint & /*point*/,
                                          DevicePlan & /*plan*/) const {
    return mlir::success();
  }
};

/// The strategies of a kernel's steps, in their order. Afterwards the placement has no memory for what they do not
/// store.
using StepStrategies = std::vector<std::unique_ptr<StepStrategy>>;
StepStrategies chooseStrategies(mlir::func::FuncOp kernel, Placement &placement);

/// The name of the first among the strategies that is of the most work, and the parameters of all.
Schedulable describe(const StepStrategies &strategies);
/// The same, with Halide's parameters where that can make the kernel instead. The strategies are of the placement.
Schedulable describe(mlir::func::FuncOp kernel, const Placement &placement, const StepStrategies &strategies);

} // namespace kiln::cuda
