// SPDX-License-Identifier: Apache-2.0
//
// The values of a parameter: those of the weight file, as the storage format represents them, with several sources
// joined.
#pragma once

#include "compiler/dialect/KilnDialect.h"
#include "compiler/verify/ModuleInterpreter.h"

namespace kiln::verify {

/// Returns the storage format of a parameter, at any stage; null: it is not quantised.
mlir::kiln::StorageAttr storageOf(mlir::kiln::ParameterOp parameter);

/// Returns the values that a weight's stored numbers represent. Throws std::runtime_error if it cannot be stored so.
SharedTensor asStored(const SharedTensor &weight, mlir::kiln::StorageAttr storage);

/// Returns the sources as they are stored, one after another along a dimension. A weight may be viewed as a matrix.
/// `shape`: of the parameter.
Tensor valueOf(mlir::kiln::ParameterOp parameter, const TensorShape &shape,
               llvm::function_ref<SharedTensor(llvm::StringRef source)> weightOf);

} // namespace kiln::verify
