// SPDX-License-Identifier: Apache-2.0
//
// How the stages of a kernel become launches. The first strategy that matches a stage executes it, and may fuse later
// stages into its launch; `loops` matches every stage.
#pragma once

#include "targets/cuda/plan/KernelStages.h"
#include "targets/cuda/plan/LaunchPlan.h"
#include "targets/cuda/tile/Builder.h"
#include "targets/target.h"

namespace kiln::cuda {

/// The dynamic shared memory of a block that each GPU since 8.0 has, in bytes, and the number of multiprocessors of
/// the first of them.
constexpr int64_t leastSharedLimit = 99 << 10, leastMultiprocessors = 108;

/// A kernel stage and its context, which outlive its strategy.
struct StageContext {
  mlir::func::FuncOp kernel;
  const Placement &placement;
  const KernelStage &stage;
  size_t number = 0; // index among the placement's stages
};

/// The resources of a block, computed from the schedule before code is built.
struct BlockNeeds {
  int64_t threads = 0;
  int64_t registers = 0; // per thread; an estimate, since the driver's assembler decides
  int64_t sharedBytes = 0;
  double sharedTraffic = 0; // bytes read from shared memory per fused multiply-add
  int64_t mmaBytes = 0;     // size of an element that tensor cores multiply; 0: CUDA cores do
};

class StageStrategy {
public:
  virtual ~StageStrategy() = default;

  /// Returns "attention", "contraction", "skinny_gemm", "running_sum", "rows", "columns" or "loops".
  virtual llvm::StringRef name() const = 0;

  /// Returns the number of stages that it executes, from its first one on.
  virtual size_t numStages() const { return 1; }

  /// Returns the values that the placement stores in those stages but the strategy does not, since no other stage
  /// reads them.
  virtual llvm::ArrayRef<mlir::Value> unstored() const { return {}; }

  /// Returns the parameters. Stages of a kernel that have a parameter of the same name share its value.
  virtual SearchSpace searchSpace() const = 0;

  /// Returns the resources of its largest blocks; nullopt if they are not known, so that no GPU is rejected.
  virtual std::optional<BlockNeeds> needs(const ScheduleConfig &) const { return std::nullopt; }
  /// Returns the same for its TMA variant; nullopt if there is none.
  virtual std::optional<BlockNeeds> tmaNeeds(const ScheduleConfig &) const { return std::nullopt; }

  /// Returns the keys of its parameters that have no effect on a GPU of this capability, since it does not launch the
  /// variant that they configure.
  virtual llvm::SmallVector<std::string> idleParameters(int64_t /*capability*/) const { return {}; }

  /// Appends functions and launches. Emits a diagnostic where code generation is not supported.
  virtual mlir::LogicalResult build(tile::Builder &b, const ScheduleConfig &config, LaunchPlan &plan) const = 0;

  /// Adds the TMA variant of its launches, those from `first` on, if there is one. The builder's module is for sm_90a.
  virtual mlir::LogicalResult buildTma(tile::Builder & /*b*/, size_t /*first*/, const ScheduleConfig & /*config*/,
                                       LaunchPlan & /*plan*/) const {
    return mlir::success();
  }
};

/// Chooses the strategies of a kernel's stages, in their order. Afterwards the placement has no memory for values that
/// they do not store.
using StageStrategies = std::vector<std::unique_ptr<StageStrategy>>;
StageStrategies chooseStrategies(mlir::func::FuncOp kernel, Placement &placement);

/// Returns the name of the strategy for the most work, and the parameters of all strategies.
Schedulable describe(const StageStrategies &strategies);
/// Returns the same, with Halide's parameters if Halide can make the kernel instead. The strategies belong to the
/// placement.
Schedulable describe(mlir::func::FuncOp kernel, const Placement &placement, const StageStrategies &strategies);

} // namespace kiln::cuda
