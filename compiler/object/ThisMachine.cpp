// SPDX-License-Identifier: Apache-2.0
#include "compiler/object/ThisMachine.h"

#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

namespace kiln {

bool isForThisMachine(llvm::StringRef triple) {
  const llvm::Triple wanted(llvm::Triple::normalize(triple)), here(llvm::sys::getProcessTriple());
  const bool isSameSystem = wanted.getOS() == here.getOS() || (wanted.isMacOSX() && here.isMacOSX());
  return wanted.getArch() == here.getArch() && isSameSystem && wanted.getEnvironment() == here.getEnvironment();
}

} // namespace kiln
