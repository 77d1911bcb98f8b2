// SPDX-License-Identifier: Apache-2.0
//
// Links a library as a shared object, for programs that load it at run time and for languages that cannot link an
// archive. Only what the C header declares is exported. A C compiler for the target links it.
#pragma once

#include "compiler/object/Object.h"

#include <string>
#include <vector>

namespace kiln {

/// Returns the functions of a model that a generated C header declares: NAME_x before "(", outside of comments and
/// macros.
std::vector<std::string> declaredFunctions(llvm::StringRef header, llvm::StringRef model);

/// Returns "libNAME.so", "NAME.dll" for Windows, or "libNAME.dylib" for macOS and iOS.
std::string sharedObjectName(llvm::StringRef model, llvm::StringRef triple);

/// Returns the command that links shared objects for the target: the environment's CC or cc for this machine, Debian's
/// cross compiler for another one, the NDK's for Android, or an empty string if none is known.
std::string defaultLinker(llvm::StringRef triple);

struct SharedObject {
  std::string path;   // output path
  std::string model;  // name of the model, the prefix of its symbols
  std::string triple; // target triple of the members
  std::string linker; // a C compiler and its options; empty: defaultLinker
  uint32_t abiVersion = 0;
};

/// Links the members, which must hide nothing that the header declares. For Windows, it also writes an import library,
/// libNAME.dll.a, to the same folder. The linker's output goes to standard error.
llvm::Error linkSharedObject(const SharedObject &object, std::vector<ObjectFile> members, llvm::StringRef header);

} // namespace kiln
