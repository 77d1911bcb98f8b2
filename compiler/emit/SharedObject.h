// SPDX-License-Identifier: Apache-2.0
//
// A library as a shared object, for programs that load it and for languages that cannot link an archive: what the C
// header declares is exported, and nothing else. A C compiler for the target links it.
#pragma once

#include "compiler/object/Object.h"

#include <string>
#include <vector>

namespace kiln {

/// The functions of a model that a generated C header declares: outside of comments and macros, NAME_x before "(".
std::vector<std::string> declaredFunctions(llvm::StringRef header, llvm::StringRef model);

/// "libNAME.so"; for Windows "NAME.dll", for macOS "libNAME.dylib".
std::string sharedObjectName(llvm::StringRef model, llvm::StringRef triple);

/// A command by which shared objects for the target are linked: the environment's CC or cc for this machine, Debian's
/// cross compiler for another one; empty: there is none that is known.
std::string defaultLinker(llvm::StringRef triple);

struct SharedObject {
  std::string path;   // where it goes
  std::string model;  // the name that its symbols begin with
  std::string triple; // of the members
  std::string linker; // a C compiler and its options; empty: defaultLinker
  uint32_t abiVersion = 0;
};

/// Links the members, which must hide nothing that the header declares; for Windows an import library, libNAME.dll.a,
/// is written next to it. What the linker prints goes to standard error.
llvm::Error linkSharedObject(const SharedObject &object, std::vector<ObjectFile> members, llvm::StringRef header);

} // namespace kiln
