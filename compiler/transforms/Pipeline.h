// SPDX-License-Identifier: Apache-2.0
//
// The order of the passes, from what the frontend imports to kernels that a target compiles.
#pragma once

#include "compiler/transforms/Passes.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "targets/target.h"

namespace mlir::kiln {

struct PipelineOptions {
  /// What the target decides.
  ::kiln::TargetHooks target;
  /// Norms take mean and variance from the contractions before them.
  bool normMoments = false;
  /// Factors of f32 may be rounded to tf32. For targets that can.
  bool tf32 = false;
  /// Kernels compute each row alike, however many there are. For targets that can.
  bool ordered = false;
  /// States that slide by some rows stay where they are. For CPUs.
  bool slides = false;
};

/// The first passes, after which what reads as attention is one op.
void buildRecognition(OpPassManager &passes);

/// All of them.
void buildPipeline(OpPassManager &passes, const PipelineOptions &options);

/// The dialects that a module may hold on its way.
void registerPipelineDialects(DialectRegistry &registry);

} // namespace mlir::kiln
