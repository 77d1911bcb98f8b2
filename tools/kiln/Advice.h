// SPDX-License-Identifier: Apache-2.0
//
// Words for common mistakes that the C++ compiler reports in its own terms.
#pragma once

#include "tools/kiln/CompilerOutput.h"
#include "tools/kiln/Diagnose.h"

namespace kiln::diagnose {

struct Mistake {
  Place place;
  std::string text;
};

/// Returns the text in the first quotes after `from`.
std::string quotedIn(const std::string &text, std::size_t from = 0);

/// Returns "Block::forward" for "auto Block::forward(const auto:1&) const [with ...]", and "forward" for
/// "forward<...>".
std::string functionName(std::string text);

/// Returns what to write for a function of std in this line that has a counterpart for tensors; preferably for the one
/// that the compiler's text names.
std::optional<std::string> adviceOnStd(const std::string &line, const std::string &text);

/// Explains C++'s own error with this text, which the compiler reports at this place.
Mistake advised(const Place &place, const std::string &text, const std::vector<Source> &sources);

} // namespace kiln::diagnose
