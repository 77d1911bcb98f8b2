// SPDX-License-Identifier: Apache-2.0
//
// Errors of command lines: words that no option or subcommand is, and values that are none of a list, with the nearest
// ones. `kiln` and the generators share it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace kiln {

/// Prints the error, or the help or version that was requested, and returns the exit status.
int refuseCommandLine(const CLI::App &app, const CLI::ParseError &error);

/// Accepts one of these values.
CLI::Validator oneOf(std::vector<std::string> values);

/// Refuses an empty word, which would be the root folder in the path of a file.
CLI::Validator notEmpty();

} // namespace kiln
