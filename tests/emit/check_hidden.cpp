// SPDX-License-Identifier: Apache-2.0
//
// kiln_check_hidden ARCHIVE: checks that no member defines a symbol that a program or shared object linked with it
// would export, and that no symbol is defined by two members. Supports archives of all systems.
#include "compiler/object/Object.h"

#include "llvm/Support/MemoryBuffer.h"
#include <cstdio>
#include <set>

int main(int count, char **words) {
  if (count != 2) {
    std::fputs("kiln_check_hidden: no archive; expected one\n", stderr);
    return 2;
  }
  auto file = llvm::MemoryBuffer::getFile(words[1]);
  if (!file) {
    std::fprintf(stderr, "%s: %s\n", words[1], file.getError().message().c_str());
    return 2;
  }
  llvm::Expected<std::vector<kiln::ObjectFile>> members = kiln::readArchive((*file)->getBuffer());
  if (!members) {
    std::fprintf(stderr, "%s: %s\n", words[1], llvm::toString(members.takeError()).c_str());
    return 2;
  }
  std::set<std::string> names;
  bool isGood = true;
  for (const kiln::ObjectFile &member : *members) {
    llvm::Expected<std::vector<kiln::ExportedSymbol>> symbols = kiln::definedSymbols(member.bytes);
    if (!symbols) {
      std::fprintf(stderr, "%s: %s\n", member.name.c_str(), llvm::toString(symbols.takeError()).c_str());
      return 2;
    }
    for (const kiln::ExportedSymbol &symbol : *symbols) {
      if (symbol.isExported) {
        std::fprintf(stderr, "%s: symbol is exported; expected hidden: %s\n", member.name.c_str(), symbol.name.c_str());
        isGood = false;
      }
      // On Windows constants are named by their value, and weak functions are identical.
      const bool mayBeTwice =
          llvm::StringRef(symbol.name).starts_with("__") || llvm::StringRef(symbol.name).contains("_simd_");
      if (!names.insert(symbol.name).second && !mayBeTwice) {
        std::fprintf(stderr, "%s: symbol is defined by two members: %s\n", member.name.c_str(), symbol.name.c_str());
        isGood = false;
      }
    }
  }
  std::printf("%zu members, %zu symbols\n", members->size(), names.size());
  return isGood && names.size() >= 10 ? 0 : 1;
}
