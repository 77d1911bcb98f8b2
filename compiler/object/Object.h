// SPDX-License-Identifier: Apache-2.0
//
// Object files and archives: compiles LLVM IR to a relocatable object, renames global symbols, and writes the archive.
// Everything is deterministic: the same input produces the same bytes.
#pragma once

#include "compiler/object/InlineFunctions.h"
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

/// A symbol by its name in C.
struct ObjectSymbol {
  std::string name;
  bool defined;
};

/// The CPU that code is compiled for, in LLVM's names: "riscv64-unknown-linux-gnu", "generic-rv64", "+v".
struct CpuName {
  std::string triple, cpu;
  std::string features = {}; // in addition to those of the CPU
};

/// Compiles `module` to position-independent code for any CPU of that kind, each function and datum in a separate
/// section.
llvm::Expected<std::string> compileToObject(llvm::Module &module, const CpuName &name);

/// Compiles `module` like compileToObject(), optimised for speed, with vectorised loops. Returns assembly if
/// `isAssembly`.
llvm::Expected<std::string> compileOptimized(llvm::Module &module, const CpuName &name, bool isAssembly = false);

/// Compiles optimised LLVM bitcode, of this version or an earlier one, like compileToObject(), for the CPU that the
/// bitcode names if `name` has no triple. Returns assembly if `isAssembly`. Functions that several modules may define
/// (weak_odr) are left out if they are not used. Inlines `functions`, if any.
llvm::Expected<std::string> compileBitcode(llvm::StringRef bitcode, const CpuName &name, bool isAssembly = false,
                                           const InlinedFunctions *functions = nullptr);

/// The prefix of every symbol of the run time, which a model's name replaces.
inline constexpr llvm::StringRef runtimePrefix = "kiln_";

/// Replaces the prefix of the run time's symbols (kiln_x), and of those to which kernels refer by other prefixes
/// (KernelAbi::hookPrefix), by the model's prefix: NAME_x.
llvm::Expected<std::string> renameForModel(llvm::StringRef object, llvm::StringRef model,
                                           llvm::ArrayRef<llvm::StringRef> hookPrefixes);

/// Replaces `from`, wherever it occurs in the name of a symbol or section, by `to`.
llvm::Expected<std::string> renameKernel(llvm::StringRef object, llvm::StringRef from, llvm::StringRef to);

/// Hides each global symbol that the object defines, except for those for which `isExported` holds; a shared object
/// exports these. ELF: visibility; Mach-O: private external symbols; WebAssembly: the hidden flag; COFF, which has no
/// visibility: -exclude-symbols, which MinGW linkers obey when they export all symbols.
llvm::Expected<std::string> setVisibility(llvm::StringRef object, llvm::function_ref<bool(llvm::StringRef)> isExported);

/// A global symbol, and whether a program or shared object that contains the object exports it by default; for COFF,
/// whether it does so when it exports all symbols.
struct ExportedSymbol {
  std::string name;
  bool isExported;
};
/// Returns the global symbols that the object defines.
llvm::Expected<std::vector<ExportedSymbol>> definedSymbols(llvm::StringRef object);

/// Removes the functions whose names begin with `prefix`, each of which is in a separate section; nothing may refer to
/// them.
llvm::Expected<std::string> removeFunctions(llvm::StringRef object, llvm::StringRef prefix);

/// Returns the global symbols of an object.
llvm::Expected<std::vector<ObjectSymbol>> globalSymbols(llvm::StringRef object);

/// Returns the bytes of executable sections.
llvm::Expected<uint64_t> textBytes(llvm::StringRef object);

/// Returns the members of an archive image.
llvm::Expected<std::vector<ObjectFile>> readArchive(llvm::StringRef image);

/// Returns an archive with a symbol table and without dates or owners: a GNU archive, for macOS and iOS a Darwin
/// archive, for Windows a library of Microsoft's form, which GNU's linker also reads.
llvm::Expected<std::string> makeArchive(const std::vector<ObjectFile> &members);

} // namespace kiln
