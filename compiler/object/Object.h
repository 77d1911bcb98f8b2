// SPDX-License-Identifier: Apache-2.0
//
// Object files and archives: LLVM IR to a relocatable object, renaming of global symbols, and the archive itself.
// Everything is deterministic: the same input gives the same bytes.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace llvm {
class Module;
}

namespace kiln {

/// A member of an archive.
struct ObjectFile {
  std::string name; // "gpt_host.o"
  std::string bytes;
};

/// A symbol as C calls it.
struct ObjectSymbol {
  std::string name;
  bool defined;
};

/// What code is compiled for, in LLVM's names: "riscv64-unknown-linux-gnu", "generic-rv64", "+v".
struct CpuName {
  std::string triple, cpu;
  std::string features = {}; // beside those of the CPU
};

/// Compiles `module`, position independent, each function and datum in a section of its own, for any CPU of that kind.
llvm::Expected<std::string> compileToObject(llvm::Module &module, const CpuName &name);

/// The same for bitcode of LLVM, of this version or one before, that is optimised already; as text if `isAssembly`.
/// Functions that any module may have (weak_odr) are left out where none is called.
llvm::Expected<std::string> compileBitcode(llvm::StringRef bitcode, const CpuName &name, bool isAssembly = false);

/// The prefix that every symbol of the run time has before a model's own name replaces it.
inline constexpr llvm::StringRef runtimePrefix = "kiln_";

/// Gives the run time's symbols (kiln_x) and those that kernels know by other prefixes (KernelAbi::hookPrefix) the
/// model's prefix: NAME_x.
llvm::Expected<std::string> renameForModel(llvm::StringRef object, llvm::StringRef model,
                                           llvm::ArrayRef<llvm::StringRef> hookPrefixes);

/// Replaces `from`, wherever it occurs in the name of a symbol or section, by `to`.
llvm::Expected<std::string> renameKernel(llvm::StringRef object, llvm::StringRef from, llvm::StringRef to);

/// Hides each global symbol that the object defines, but for those that `isExported` says, which a shared object
/// exports. ELF: visibility; Mach-O: private external symbols; WebAssembly: the hidden flag; COFF, which has no
/// visibility: -exclude-symbols, by which linkers of MinGW leave a symbol out when they export all.
llvm::Expected<std::string> setVisibility(llvm::StringRef object, llvm::function_ref<bool(llvm::StringRef)> isExported);

/// Whether a program or shared object that holds the object exports a symbol of it by itself; of COFF, if all are.
struct ExportedSymbol {
  std::string name;
  bool isExported;
};
/// The global symbols that the object defines.
llvm::Expected<std::vector<ExportedSymbol>> definedSymbols(llvm::StringRef object);

/// Leaves out the functions whose names begin with `prefix`, each in a section of its own; nothing may refer to them.
llvm::Expected<std::string> removeFunctions(llvm::StringRef object, llvm::StringRef prefix);

/// The global symbols of an object.
llvm::Expected<std::vector<ObjectSymbol>> globalSymbols(llvm::StringRef object);

/// Bytes of executable sections.
llvm::Expected<uint64_t> textBytes(llvm::StringRef object);

/// The members of an archive image.
llvm::Expected<std::vector<ObjectFile>> readArchive(llvm::StringRef image);

/// A GNU archive, for macOS a Darwin one, with a symbol table and no dates or owners.
llvm::Expected<std::string> makeArchive(const std::vector<ObjectFile> &members);

} // namespace kiln
