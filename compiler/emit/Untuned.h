// SPDX-License-Identifier: Apache-2.0
//
// Kernels that a build requires to be measured and that were not, and the commands that do so.
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

} // namespace kiln
