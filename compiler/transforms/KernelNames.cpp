// SPDX-License-Identifier: Apache-2.0
#include "compiler/transforms/KernelNames.h"

#include "compiler/dialect/Check.h"
#include "kiln/numbered.h"
#include "llvm/ADT/StringExtras.h"

namespace mlir::kiln {

/// Whether the op is omitted from kernel names.
static bool isIncidental(Operation *op) {
  return isa<ConstantOp, ExpandOp, ReshapeOp, PositionsOp>(op) || hasRole(op, KernelRole::Movement);
}

std::string describeGroup(const KernelGroup &group) {
  SmallVector<StringRef> before, after;
  bool isAfter = false;
  for (Operation *op : group.ops) {
    if (op == group.anchor)
      isAfter = true;
    else if (!isIncidental(op))
      (isAfter ? after : before).push_back(op->getName().stripDialect());
  }
  constexpr size_t most = 3;
  SmallVector<StringRef> names{group.anchor->getName().stripDialect()};
  for (StringRef name : after)
    if (names.size() < most)
      names.push_back(name);
  for (StringRef name : llvm::reverse(before))
    if (names.size() < most)
      names.insert(names.begin(), name);
  return llvm::join(names, "_");
}

static SmallVector<Attribute> scopesOf(func::FuncOp kernel) {
  auto scopes = kernel->getAttrOfType<ArrayAttr>(scopesAttrName);
  return scopes ? SmallVector<Attribute>(scopes.begin(), scopes.end()) : SmallVector<Attribute>();
}

void recordScope(func::FuncOp kernel, Location anchor) {
  if (StringRef scope = getScope(anchor); !scope.empty())
    kernel->setAttr(scopesAttrName,
                    Builder(kernel.getContext()).getStrArrayAttr(StringRef(::kiln::written_name(scope.str()))));
}

void uniteScopes(func::FuncOp kernel, func::FuncOp other) {
  SmallVector<Attribute> scopes = scopesOf(kernel);
  for (Attribute scope : scopesOf(other))
    if (!llvm::is_contained(scopes, scope))
      scopes.push_back(scope);
  if (!scopes.empty())
    kernel->setAttr(scopesAttrName, ArrayAttr::get(kernel.getContext(), scopes));
}

StringRef stemOf(StringRef name) {
  StringRef stem = name.rtrim("0123456789");
  return stem.consume_back("_") ? stem : name;
}

/// Returns the components of the common path prefix of all scopes, without layer numbers.
static SmallVector<StringRef> commonPath(ArrayRef<Attribute> scopes) {
  SmallVector<StringRef> common;
  for (auto [i, scope] : llvm::enumerate(scopes)) {
    SmallVector<StringRef> parts;
    cast<StringAttr>(scope).getValue().split(parts, '.');
    llvm::erase(parts, "{}");
    if (i == 0)
      common = parts;
    size_t same = 0;
    while (same < common.size() && same < parts.size() && common[same] == parts[same])
      ++same;
    common.truncate(same);
  }
  return common;
}

std::string nameKernel(func::FuncOp kernel, StringRef what, int64_t number) {
  std::string name = (what + "_" + Twine(number)).str();
  SmallVector<StringRef> path = commonPath(scopesOf(kernel));
  for (StringRef part : ArrayRef(path).take_back(2)) {
    name += '_';
    for (char c : part)
      name += llvm::isAlnum(c) ? c : '_';
  }
  return name;
}

} // namespace mlir::kiln
