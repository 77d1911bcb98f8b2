// SPDX-License-Identifier: Apache-2.0
//
// Reports kernels that were not measured, if a build requires measurements, and the commands that measure them.
#pragma once

#include "compiler/driver/Schedules.h"
#include "compiler/library/ShapeVariants.h"

namespace kiln {

/// A variant and its lowered module.
struct ChosenVariant {
  const Variant &variant;
  mlir::ModuleOp module;
  const ShapeVariants &forms;
};

/// If the options require measured schedules, returns the kernels that lack one and the commands that measure them, at
/// the extents of the file's measurements of the model or, where these do not call such a kernel, at other extents.
/// Returns an empty string if no kernel lacks one.
std::string findUntuned(llvm::ArrayRef<ChosenVariant> variants, const TuningOptions &options);

/// Returns the command that measures all kernels of these targets, at the bounds of their extents.
std::string measuringCommand(const std::vector<std::string> &targets, const TuningOptions &options);

/// Whether all kernels have measured schedules.
bool isTuned(llvm::ArrayRef<Variant> variants);

/// Returns one line: the number of kernels with measured schedules and, unless all have one, the command that measures
/// the rest.
std::string describeTuning(llvm::ArrayRef<Variant> variants, const TuningOptions &options);

} // namespace kiln
