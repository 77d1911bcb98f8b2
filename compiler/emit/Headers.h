// SPDX-License-Identifier: Apache-2.0
//
// The texts that go with an archive: NAME.h (C11), NAME.hpp (C++20), NAME.manifest.json, NAME.pc and NAME.LICENSE.txt.
// Each is a pure function of the interface and of what was compiled.
#pragma once

#include "compiler/emit/Interface.h"

namespace kiln {

/// The C header: the run time's types, the model's constants, its functions.
std::string writeCHeader(const ModelInterface &model, const std::vector<Variant> &variants);

/// The C++ header: a class that owns the model, and views whose types carry the shapes.
std::string writeCxxHeader(const ModelInterface &model, const std::vector<Variant> &variants);

/// The manifest: everything in the headers, plus placements, kernels, schedules and sizes, for machines.
std::string writeManifest(const ModelInterface &model, const std::vector<Variant> &variants);

/// How to compile and link with the library, for pkg-config.
std::string writePkgConfig(const ModelInterface &model, bool isShared = false);

/// What of the library is Kiln's, and under which licence.
std::string writeLicense(const ModelInterface &model);

/// The SPDX expression for what Kiln writes.
inline constexpr const char *licenseOfLibraries = "Apache-2.0 WITH LLVM-exception";

/// "char_gpt" as a prefix of macros: "CHAR_GPT".
std::string macroName(const std::string &name);

} // namespace kiln
