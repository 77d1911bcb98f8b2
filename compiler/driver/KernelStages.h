// SPDX-License-Identifier: Apache-2.0
//
// The stages of a compilation from kernel functions to objects: choice of schedules, then the text of kernels or their
// objects.
#pragma once

#include "compiler/driver/TargetModule.h"

namespace kiln {

/// Returns a variant for each target, with a summary of each kernel that lacks the facts that only compilation
/// provides. Fails if the options require measured schedules and a kernel has none.
mlir::FailureOr<std::vector<Variant>> chooseSchedules(CompileContext &context, LoweredTargets &lowered);

/// Returns the text of all kernels.
mlir::FailureOr<std::string> printAllKernels(CompileContext &context, LoweredTargets &lowered,
                                             llvm::ArrayRef<Variant> variants, KernelText form);

/// Stores the loop nests of the target `options.loopsOf` in the summaries of its kernels.
mlir::LogicalResult describeLoops(CompileContext &context, LoweredTargets &lowered,
                                  llvm::MutableArrayRef<Variant> variants);

/// For each target, the objects of its kernels in the order of Variant::kernels.
using KernelObjects = std::vector<std::vector<KernelObject>>;

/// Compiles all kernels, and stores the sizes of their code in the summaries. With a folder for dumps, their statements
/// and assembly are written there.
mlir::FailureOr<KernelObjects> compileObjects(CompileContext &context, LoweredTargets &lowered,
                                              llvm::MutableArrayRef<Variant> variants);

/// Returns the kernels as members of an archive.
std::vector<ObjectFile> kernelMembers(llvm::ArrayRef<Variant> variants, KernelObjects objects);

} // namespace kiln
