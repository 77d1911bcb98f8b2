// SPDX-License-Identifier: Apache-2.0
//
// Identifies every loaded library by the build ID that its linker wrote into it or, if it has none, by a hash of its
// file. The main program counts only if the compiler is linked into it: a spec's generator is not part of the compiler.
#include "compiler/jobs/ObjectCache.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SHA256.h"
#include <algorithm>
#include <elf.h>
#include <link.h>
#include <set>

namespace kiln {

using namespace llvm;

/// Returns the description of the note NT_GNU_BUILD_ID in a mapped segment of notes; empty if there is none.
static StringRef findBuildId(const char *segment, size_t bytes) {
  const auto padded = [](size_t size) { return (size + 3) & ~size_t(3); };
  for (StringRef rest(segment, bytes); rest.size() >= sizeof(ElfW(Nhdr));) {
    ElfW(Nhdr) note;
    std::memcpy(&note, rest.data(), sizeof note);
    const size_t name = sizeof note, text = name + padded(note.n_namesz), end = text + padded(note.n_descsz);
    if (end > rest.size())
      break;
    if (note.n_type == NT_GNU_BUILD_ID && rest.substr(name, note.n_namesz) == StringRef("GNU\0", 4))
      return rest.substr(text, note.n_descsz);
    rest = rest.drop_front(end);
  }
  return "";
}

static std::string identify(const dl_phdr_info &library, StringRef path) {
  for (size_t i = 0; i < library.dlpi_phnum; ++i) {
    const ElfW(Phdr) &header = library.dlpi_phdr[i];
    if (header.p_type != PT_NOTE)
      continue;
    const char *segment = reinterpret_cast<const char *>(library.dlpi_addr + header.p_vaddr);
    if (StringRef id = findBuildId(segment, header.p_memsz); !id.empty())
      return toHex(id, /*LowerCase=*/true);
  }
  SHA256 hash;
  if (auto file = MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false))
    hash.update((*file)->getBuffer());
  return toHex(hash.final(), /*LowerCase=*/true);
}

/// Whether this function is in the library's code.
static bool holdsTheCompiler(const dl_phdr_info &library) {
  const auto here = reinterpret_cast<ElfW(Addr)>(&holdsTheCompiler);
  for (size_t i = 0; i < library.dlpi_phnum; ++i) {
    const ElfW(Phdr) &header = library.dlpi_phdr[i];
    const ElfW(Addr) begin = library.dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD && here >= begin && here < begin + header.p_memsz)
      return true;
  }
  return false;
}

static int collect(dl_phdr_info *library, size_t, void *context) {
  StringRef path = library->dlpi_name;
  const bool isMain = path.empty();
  // A library without a path is the vDSO of the operating system's kernel.
  if (isMain ? holdsTheCompiler(*library) : path.contains('/'))
    static_cast<std::set<std::string> *>(context)->insert(identify(*library, isMain ? "/proc/self/exe" : path));
  return 0;
}

const std::string &compilerFingerprint() {
  static const std::string text = [] {
    std::set<std::string> libraries;
    dl_iterate_phdr(collect, &libraries);
    return join(libraries, " ");
  }();
  return text;
}

} // namespace kiln
