// SPDX-License-Identifier: Apache-2.0
//
// The texts that describe a library to programs: NAME.h (C89 and C++11), NAME.hpp (C++17) and NAME.manifest.json. Each
// is a pure function of the interface and of the compiled variants.
#pragma once

#include "compiler/library/Interface.h"

namespace kiln {

/// Returns the C header: the runtime's types, the model's constants and its functions.
std::string writeCHeader(const ModelInterface &model, const std::vector<Variant> &variants);

/// Returns the C++ header: a class that owns the model, and views whose types carry the shapes.
std::string writeCxxHeader(const ModelInterface &model, const std::vector<Variant> &variants);

/// Returns the manifest: everything in the headers, plus placements, kernels, schedules and sizes, in a
/// machine-readable form.
std::string writeManifest(const ModelInterface &model, const std::vector<Variant> &variants);

/// The SPDX expression for what Kiln writes.
inline constexpr const char *licenseOfLibraries = "Apache-2.0 WITH LLVM-exception";

/// Returns the name as a prefix of macros: "CHAR_GPT" for "char_gpt".
std::string macroName(const std::string &name);

} // namespace kiln
