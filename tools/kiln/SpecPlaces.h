// SPDX-License-Identifier: Apache-2.0
//
// Finds the lines of a spec that a mistake is about.
#pragma once

#include "tools/kiln/Diagnose.h"
#include "tools/kiln/RuleText.h"

namespace kiln::diagnose {

struct Found {
  const Source *source = nullptr;
  std::size_t line = 0; // counted from 0

  explicit operator bool() const { return source != nullptr; }
  Place place() const { return {source->path, static_cast<int>(line) + 1}; }
  const std::string &text() const { return source->lines[line]; }
};

/// Returns a line with the text; the last one if `isLast`.
Found findText(const std::vector<Source> &sources, const std::string &text, bool isLast = false);

/// Returns the place of a mistake in the whole model, for which the compiler only reports the line of KILN_MODEL. If
/// the rule names several faults, `told` gets the one that applies.
Found placeOfModelRule(Told &told, const std::vector<Source> &sources);

/// Returns the text of a line; empty if there is none.
std::string lineAt(const Place &place, const std::vector<Source> &sources);

} // namespace kiln::diagnose
