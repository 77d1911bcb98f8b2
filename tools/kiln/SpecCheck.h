// SPDX-License-Identifier: Apache-2.0
//
// Mistakes in the command of a spec that its C++ compiler or its generator would report in other terms.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace kiln {

/// Returns the mistake in the spec of `kiln SUBCOMMAND SPEC WORD...`, or an empty text.
std::string checkSpec(const std::string &subcommand, const std::filesystem::path &spec,
                      const std::vector<std::string> &words);

/// Returns the mistake in a flag of the C++ compiler that is not after "--", or an empty text.
std::string checkFlags(const std::string &subcommand, const std::vector<std::string> &words);

/// Returns the mistake in the C++ compiler, which may be two words, such as `ccache g++`, or an empty text.
std::string checkCompiler(const std::vector<std::string> &compiler);

/// Whether a spec includes <kiln/generator.h>, and its first text is the inclusion of the language. Then a precompiled
/// header before it changes nothing; otherwise, it would conceal that other compilers reject the spec.
bool beginsWithLanguage(const std::filesystem::path &spec, const std::vector<std::string> &flags);

} // namespace kiln
