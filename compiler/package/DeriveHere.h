// SPDX-License-Identifier: Apache-2.0
//
// Computes derived weights in the compiler, for libraries that embed their weights and for packed files. A program that
// binds weights computes them with the library's kernels instead.
#pragma once

#include "compiler/library/Interface.h"

#include "mlir/IR/BuiltinOps.h"

struct kiln_model_t;

namespace kiln {

/// Stores in the variant the part of a fully lowered module that computes the derived weights.
void describeDerivation(mlir::ModuleOp module, Variant &variant);

/// Computes the variant's derived weights in the packed copy of a model whose other weights are bound. Throws
/// std::runtime_error for operations that cannot be evaluated.
void deriveWeights(kiln_model_t &model, const Variant &variant);

} // namespace kiln
