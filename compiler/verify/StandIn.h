// SPDX-License-Identifier: Apache-2.0
//
// A custom function, which only the program has, is evaluated as another function of the same types: no pass may depend
// on what the function computes, so any one shows a pass that changes its operands, or confuses its results. Two
// functions of different names differ.
#pragma once

#include <vector>

#include "compiler/interpreter/Tensor.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace kiln::verify {

/// Returns the results of the stand-in. A floating-point element is a weighted sum of all floating-point elements of
/// the operands, an integer depends on all integers, and each on its position.
std::vector<interpreter::Tensor> evaluateStandIn(llvm::StringRef name,
                                                 llvm::ArrayRef<const interpreter::Tensor *> operands,
                                                 llvm::ArrayRef<ElementType> elements,
                                                 llvm::ArrayRef<interpreter::TensorShape> shapes);

} // namespace kiln::verify
