// SPDX-License-Identifier: Apache-2.0
#include "compiler/dialect/StageRoles.h"

#include "compiler/dialect/KilnDialect.h"
#include "runtime/src/core/model.h"

namespace mlir::kiln {

SmallVector<StageRole> getStageRoles(ModuleOp module) {
  auto firsts = module->getAttrOfType<DenseI64ArrayAttr>(rolesAttrName);
  if (!firsts)
    return {StageRole()};
  SmallVector<StageRole> roles;
  for (auto [number, first] : llvm::enumerate(firsts.asArrayRef())) {
    const std::string middle = number == KILN_STAGE_ROLE_MIDDLE ? "middle" : "middle" + std::to_string(number - 1);
    roles.push_back({number == KILN_STAGE_ROLE_FIRST  ? "first"
                     : number == KILN_STAGE_ROLE_LAST ? "last"
                                                      : middle,
                     first});
  }
  return roles;
}

std::string getStageRoleName(StringRef entry, StringRef role) {
  return role.empty() ? entry.str() : (entry + "_" + role).str();
}

StringRef getStageRole(func::FuncOp function) {
  auto role = function->getAttrOfType<StringAttr>(roleAttrName);
  return role ? role.getValue() : "";
}

StringRef getEntryName(func::FuncOp function) {
  StringRef name = function.getName();
  if (const StringRef role = getStageRole(function); !role.empty() && name.consume_back(role))
    name.consume_back("_");
  return name;
}

} // namespace mlir::kiln
