// SPDX-License-Identifier: Apache-2.0
//
// Embeds the runtime's archives, one for each architecture that this build has a compiler for, its header and its
// licence in the compiler, so that a generator needs no other files. The build writes the list:
//
//   KILN_RUNTIME("aarch64-linux-gnu", aarch64, "/.../libkiln_runtime_aarch64.a")
#include "compiler/library/RuntimeImage.h"

#include "llvm/TargetParser/Triple.h"

#define KILN_HIDDEN __attribute__((visibility("hidden")))

// Defines a file's bytes between two symbols.
#define KILN_INCLUDE_BYTES(name, path)                                                                                 \
  __asm__(".section .rodata\n"                                                                                         \
          ".balign 16\n"                                                                                               \
          ".globl " #name "_begin, " #name "_end\n"                                                                    \
          ".hidden " #name "_begin\n"                                                                                  \
          ".hidden " #name "_end\n" #name "_begin:\n"                                                                  \
          ".incbin \"" path "\"\n" #name "_end:\n"                                                                     \
          ".text\n");                                                                                                  \
  extern "C" KILN_HIDDEN const char name##_begin[], name##_end[];

KILN_INCLUDE_BYTES(kiln_runtime_header, KILN_RUNTIME_HEADER)
KILN_INCLUDE_BYTES(kiln_license, KILN_LICENSE)
#define KILN_RUNTIME(triple, name, path) KILN_INCLUDE_BYTES(kiln_runtime_##name, path)
#include "RuntimeImages.inc"
#undef KILN_RUNTIME

namespace kiln {

static llvm::StringRef between(const char *begin, const char *end) { return {begin, static_cast<size_t>(end - begin)}; }

llvm::Expected<llvm::StringRef> runtimeArchive(llvm::StringRef triple) {
  const struct {
    const char *triple;
    llvm::StringRef archive;
  } images[] = {
#define KILN_RUNTIME(triple, name, path) {triple, between(kiln_runtime_##name##_begin, kiln_runtime_##name##_end)},
#include "RuntimeImages.inc"
#undef KILN_RUNTIME
  };
  const llvm::Triple wanted(llvm::Triple::normalize(triple));
  std::string known;
  for (const auto &image : images) {
    const llvm::Triple own(llvm::Triple::normalize(image.triple));
    if (own.getArch() == wanted.getArch() && own.getOS() == wanted.getOS())
      return image.archive;
    known += (known.empty() ? "" : ", ") + std::string(image.triple);
  }
  return llvm::createStringError("this build of Kiln has no run time for " + triple + ", only for " + known);
}

llvm::StringRef runtimeHeader() { return between(kiln_runtime_header_begin, kiln_runtime_header_end); }

llvm::StringRef licenseText() { return between(kiln_license_begin, kiln_license_end); }

} // namespace kiln
