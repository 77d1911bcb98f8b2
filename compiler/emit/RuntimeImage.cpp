// SPDX-License-Identifier: Apache-2.0
//
// The run time's archive and header, carried inside the compiler so that a generator needs no files beside it.
#include "compiler/emit/RuntimeImage.h"

#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

// The build defines the two paths.
__asm__(
    ".section .rodata\n"
    ".balign 16\n"
    "kiln_runtime_archive_begin:\n"
    ".incbin \"" KILN_RUNTIME_ARCHIVE "\"\n"
    "kiln_runtime_archive_end:\n"
    "kiln_runtime_header_begin:\n"
    ".incbin \"" KILN_RUNTIME_HEADER "\"\n"
    "kiln_runtime_header_end:\n"
    ".globl kiln_runtime_archive_begin, kiln_runtime_archive_end, kiln_runtime_header_begin, kiln_runtime_header_end\n"
    ".hidden kiln_runtime_archive_begin\n"
    ".hidden kiln_runtime_archive_end\n"
    ".hidden kiln_runtime_header_begin\n"
    ".hidden kiln_runtime_header_end\n"
    ".text\n");

#define KILN_HIDDEN __attribute__((visibility("hidden")))
extern "C" KILN_HIDDEN const char kiln_runtime_archive_begin[], kiln_runtime_archive_end[];
extern "C" KILN_HIDDEN const char kiln_runtime_header_begin[], kiln_runtime_header_end[];

namespace kiln {

llvm::Expected<llvm::StringRef> runtimeArchive(llvm::StringRef triple) {
  // What this build made is for what the compiler itself runs on.
  const llvm::Triple own(llvm::sys::getProcessTriple()), wanted(triple);
  if (own.getArch() != wanted.getArch() || own.getOS() != wanted.getOS())
    return llvm::createStringError("this build of Kiln has no run time for " + triple + ", only for " + own.str());
  return llvm::StringRef(kiln_runtime_archive_begin,
                         static_cast<size_t>(kiln_runtime_archive_end - kiln_runtime_archive_begin));
}

llvm::StringRef runtimeHeader() {
  return {kiln_runtime_header_begin, static_cast<size_t>(kiln_runtime_header_end - kiln_runtime_header_begin)};
}

} // namespace kiln
