// SPDX-License-Identifier: Apache-2.0
//
// The stage of a compilation that compiles the entry-point glue of all targets, and describes where weights are packed.
#pragma once

#include "compiler/driver/KernelStages.h"
#include "compiler/hostcode/WeightLayout.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

namespace kiln {

/// Computes the layout of a target's packed weights, and stores it in the variant.
mlir::FailureOr<WeightLayout> layOutWeights(TargetModule &lowered, const ModelInterface &model, Variant &variant);

/// The host functions of all targets in one module.
struct HostModule {
  std::unique_ptr<llvm::LLVMContext> context = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> module = std::make_unique<llvm::Module>("host", *context);
  llvm::SmallSetVector<llvm::StringRef, 2> hookPrefixes; // the prefixes of all kernels (KernelAbi::hookPrefix)
  std::string memoryPlan;                                // a table and a picture for each entry of the first target
};

/// Compiles the glue, and stores the facts about entries and weights in the variants.
mlir::FailureOr<HostModule> compileGlue(CompileContext &context, LoweredTargets &lowered, const KernelObjects &objects,
                                        llvm::MutableArrayRef<Variant> variants);

} // namespace kiln
