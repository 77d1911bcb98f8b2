// SPDX-License-Identifier: Apache-2.0
//
// Embeds the runtime's archives, its header and its licence in the compiler, so that a generator needs no other files.
#include "compiler/library/RuntimeImage.h"

#include "compiler/library/EmbeddedArchive.h"

#include "llvm/ADT/StringSwitch.h"

KILN_INCLUDE_BYTES(kiln_runtime_header, KILN_RUNTIME_HEADER)
KILN_INCLUDE_BYTES(kiln_license, KILN_LICENSE)
#define KILN_ARCHIVE(triple, name, path) KILN_INCLUDE_BYTES(kiln_runtime_##name, path)
#include "kiln_runtime.inc"
#undef KILN_ARCHIVE

namespace kiln {

llvm::Expected<llvm::StringRef> runtimeArchive(llvm::StringRef triple) {
  const EmbeddedArchive archives[] = {
#define KILN_ARCHIVE(triple, name, path) {triple, KILN_INCLUDED_BYTES(kiln_runtime_##name)},
#include "kiln_runtime.inc"
#undef KILN_ARCHIVE
  };
  return findArchive(archives, triple);
}

llvm::StringRef runtimeFolder(llvm::StringRef member) {
  return llvm::StringSwitch<llvm::StringRef>(member)
#define KILN_MEMBER(name, folder) .Case(name, folder)
#include "RuntimeMembers.inc"
#undef KILN_MEMBER
      .Default("");
}

llvm::StringRef runtimeHeader() { return KILN_INCLUDED_BYTES(kiln_runtime_header); }

llvm::StringRef licenseText() { return KILN_INCLUDED_BYTES(kiln_license); }

} // namespace kiln
