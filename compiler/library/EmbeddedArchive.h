// SPDX-License-Identifier: Apache-2.0
//
// Files that are embedded in the compiler, and archives among them, one for each architecture that this build has a
// compiler for. The build writes lists of these (kiln_embed_archives in cmake/KilnCrossRuntime.cmake):
//
//   KILN_ARCHIVE("aarch64-linux-gnu", aarch64, "/.../libkiln_runtime_aarch64.a")
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

// Defines a file's bytes between two symbols.
#define KILN_INCLUDE_BYTES(name, path)                                                                                 \
  __asm__(".section .rodata\n"                                                                                         \
          ".balign 16\n"                                                                                               \
          ".globl " #name "_begin, " #name "_end\n"                                                                    \
          ".hidden " #name "_begin\n"                                                                                  \
          ".hidden " #name "_end\n" #name "_begin:\n"                                                                  \
          ".incbin \"" path "\"\n" #name "_end:\n"                                                                     \
          ".text\n");                                                                                                  \
  extern "C" __attribute__((visibility("hidden"))) const char name##_begin[], name##_end[];

// The bytes as a StringRef.
#define KILN_INCLUDED_BYTES(name) llvm::StringRef(name##_begin, static_cast<size_t>(name##_end - name##_begin))

namespace kiln {

struct EmbeddedArchive {
  const char *triple;
  llvm::StringRef bytes;
};

/// Returns the archive for the architecture, the operating system and the environment (Android, the iOS simulator) of a
/// triple. Fails if this build has none.
llvm::Expected<llvm::StringRef> findArchive(llvm::ArrayRef<EmbeddedArchive> archives, llvm::StringRef triple);

} // namespace kiln
