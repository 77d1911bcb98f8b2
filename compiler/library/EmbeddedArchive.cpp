// SPDX-License-Identifier: Apache-2.0
#include "compiler/library/EmbeddedArchive.h"

#include "llvm/TargetParser/Triple.h"

namespace kiln {

llvm::Expected<llvm::StringRef> findArchive(llvm::ArrayRef<EmbeddedArchive> archives, llvm::StringRef triple) {
  const llvm::Triple wanted(llvm::Triple::normalize(triple));
  std::string known;
  for (const EmbeddedArchive &archive : archives) {
    const llvm::Triple own(llvm::Triple::normalize(archive.triple));
    if (own.getArch() == wanted.getArch() && own.getOS() == wanted.getOS() &&
        own.getEnvironment() == wanted.getEnvironment())
      return archive.bytes;
    known += (known.empty() ? "" : ", ") + std::string(archive.triple);
  }
  return llvm::createStringError("this build of Kiln has no run time for " + triple + ", only for " + known);
}

} // namespace kiln
