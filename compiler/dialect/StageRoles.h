// SPDX-License-Identifier: Apache-2.0
//
// The roles of pipeline stages: what a module that is cut into stages states, and the functions that it has for each
// role. kiln-cut-stages makes them; host code and the description of a library read them.
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

/// Returns the roles of a module, in the order of KILN_STAGE_ROLE_ (runtime/src/core/model.h): "first", "last" and, for
/// stages between them with equal numbers of layers in every stack, "middle", "middle2" and so on. A single stage has
/// no role, "".
SmallVector<StageRole> getStageRoles(ModuleOp module);

/// Returns the name of an entry's function for that role.
std::string getStageRoleName(StringRef entry, StringRef role);

/// Returns the role of a function, or an empty text.
StringRef getStageRole(func::FuncOp function);

/// Returns the entry of which a function is the part of one role, or its own name.
StringRef getEntryName(func::FuncOp function);

} // namespace mlir::kiln
