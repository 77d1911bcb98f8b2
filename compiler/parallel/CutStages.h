// SPDX-License-Identifier: Apache-2.0
//
// Splits an entry into the functions of pipeline stages, by which ops precede and follow its stack of layers.
#pragma once

#include <string>

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::kiln {

/// Attributes of the function of a role: the role, and the total number of layers, of which its stack has one stage's.
inline constexpr llvm::StringLiteral roleAttrName = "kiln.role", layersAttrName = "kiln.layers";

/// A role that several pipeline stages share, and the first stage that has it.
struct StageRole {
  std::string name;
  int64_t stage = 0;
};

/// Records on a module the number of pipeline stages and their roles, which follow from the stacks of its entries.
void markStages(ModuleOp module, int64_t stages);

/// Returns the roles of a marked module, in the order of KILN_STAGE_ROLE_ (runtime/src/core/model.h): "first", "last"
/// and, for stages between them with equal numbers of layers in every stack, "middle", "middle2" and so on. A single
/// stage has no role, "".
SmallVector<StageRole> getStageRoles(ModuleOp module);

/// Returns the name of an entry's function for that role.
std::string getStageRoleName(StringRef entry, StringRef role);

/// Replaces an entry of a marked module by a function for each role: the initial values of the stack are received, its
/// results are sent, and the stack has the layers of one stage. Fails after a diagnostic.
FailureOr<SmallVector<func::FuncOp>> cutStages(func::FuncOp entry);

} // namespace mlir::kiln
