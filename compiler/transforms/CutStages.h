// SPDX-License-Identifier: Apache-2.0
//
// What a stage of several computes of an entry, by what stands before and behind its layers.
#pragma once

#include <string>

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::kiln {

/// The function is what a stage with that role computes.
inline constexpr llvm::StringLiteral roleAttrName = "kiln.role";

/// The roles that stages have, in the order of KILN_ROLE_ (runtime/src/model.h): "first", "last" and, if there are more
/// than two, "middle". One stage has none, "".
SmallVector<StringRef> getStageRoles(int64_t stages);

/// The function of an entry for that role.
std::string getRoleName(StringRef entry, StringRef role);

/// Replaces an entry by a function for each role: what its stack begins with is received, what it leaves is sent, and
/// of its layers there are a stage's. Failure after a diagnostic.
FailureOr<SmallVector<func::FuncOp>> cutStages(func::FuncOp entry, int64_t stages);

} // namespace mlir::kiln
