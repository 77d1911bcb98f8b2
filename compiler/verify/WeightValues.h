// SPDX-License-Identifier: Apache-2.0
//
// The values of a parameter: those of the weight file, in fewer bits where it is stored so, several side by side.
#pragma once

#include "compiler/dialect/KilnDialect.h"
#include "compiler/verify/ModuleInterpreter.h"

namespace kiln::verify {

/// How a parameter is stored, at any stage; null: as it is.
mlir::kiln::StorageAttr storageOf(mlir::kiln::ParameterOp parameter);

/// The numbers that a weight's stored ones stand for. Throws std::runtime_error for one that cannot be stored so.
SharedTensor asStored(const SharedTensor &weight, mlir::kiln::StorageAttr storage);

/// The sources as they are stored, one after another along a dimension. A weight may be seen as a matrix. `shape`: of
/// the parameter.
Tensor valueOf(mlir::kiln::ParameterOp parameter, const TensorShape &shape,
               llvm::function_ref<SharedTensor(llvm::StringRef source)> weightOf);

} // namespace kiln::verify
