// SPDX-License-Identifier: Apache-2.0
//
// What a stage of several computes of an entry, by what stands before and behind its layers.
#pragma once

#include <string>

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::kiln {

/// The function is what a stage with that role computes; its stack has a stage's layers of so many.
inline constexpr llvm::StringLiteral roleAttrName = "kiln.role", layersAttrName = "kiln.layers";

/// What stages have in common, and the first stage that is so.
struct StageRole {
  std::string name;
  int64_t stage = 0;
};

/// Says on a module how many stages it is to be cut in, and which roles they have, by the stacks of its entries.
void markStages(ModuleOp module, int64_t stages);

/// The roles of a module that is marked, in the order of KILN_ROLE_ (runtime/src/model.h): "first", "last" and, for
/// those between with as many layers of each stack, "middle", "middle2" and so on. One stage has none, "".
SmallVector<StageRole> getStageRoles(ModuleOp module);

/// The function of an entry for that role.
std::string getRoleName(StringRef entry, StringRef role);

/// Replaces an entry of such a module by a function for each role: what its stack begins with is received, what it
/// leaves is sent, and of its layers there are a stage's. Failure after a diagnostic.
FailureOr<SmallVector<func::FuncOp>> cutStages(func::FuncOp entry);

} // namespace mlir::kiln
