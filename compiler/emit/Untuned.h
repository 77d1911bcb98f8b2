// SPDX-License-Identifier: Apache-2.0
//
// Kernels that were not measured, though a build may require it, and the commands that measure them.
#pragma once

#include "compiler/emit/RowVariants.h"
#include "compiler/emit/Schedules.h"

namespace kiln {

/// A variant and what it was made of.
struct ChosenVariant {
  const Variant &variant;
  mlir::ModuleOp module;
  const RowVariants &forms;
};

/// If the options require measured schedules: what lacks one, and the commands that measure that, at the extents of the
/// file's measurements of the model or, where these call no such kernel, at others that do. Nothing if none does.
std::string findUntuned(llvm::ArrayRef<ChosenVariant> variants, const TuningOptions &options);

/// The command that measures all kernels of these targets, at the bounds of their extents.
std::string measuringCommand(const std::vector<std::string> &targets, const TuningOptions &options);

/// Whether all kernels have measured schedules.
bool isTuned(llvm::ArrayRef<Variant> variants);

/// One line: how many kernels have measured schedules and, unless all have, the command that measures the others.
std::string describeTuning(llvm::ArrayRef<Variant> variants, const TuningOptions &options);

} // namespace kiln
