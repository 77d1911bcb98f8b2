// SPDX-License-Identifier: Apache-2.0
//
// Derived weights, computed by the compiler: for a library that embeds its weights, and for packed files. A program
// that binds weights computes them with the library's kernels.
#pragma once

#include "compiler/emit/Interface.h"

#include "mlir/IR/BuiltinOps.h"

struct kiln_model_t;

namespace kiln {

/// Keeps of a module that went through all passes what computes the derived weights of the variant.
void describeDerivation(mlir::ModuleOp module, Variant &variant);

/// Computes the variant's derived weights in the packed copy of a model whose other weights are bound. Throws
/// std::runtime_error for what cannot be evaluated.
void deriveWeights(kiln_model_t &model, const Variant &variant);

} // namespace kiln
