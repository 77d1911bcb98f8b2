// SPDX-License-Identifier: Apache-2.0
//
// Lines of a spec that a mistake is about.
#pragma once

#include "compiler/tools/Diagnose.h"
#include "compiler/tools/RuleText.h"

namespace kiln::diagnose {

struct Found {
  const Source *source = nullptr;
  std::size_t line = 0; // from 0

  explicit operator bool() const { return source != nullptr; }
  Place place() const { return {source->path, static_cast<int>(line) + 1}; }
  const std::string &text() const { return source->lines[line]; }
};

/// A line with the text; the last one if `isLast`.
Found findText(const std::vector<Source> &sources, const std::string &text, bool isLast = false);

/// Where in the sources a rule of the whole model is broken, of which the compiler knows no line but KILN_MODEL's. Says
/// which fault it is if the rule names several.
Found placeOfModelRule(Told &told, const std::vector<Source> &sources);

/// The text of a line; empty if there is none.
std::string lineAt(const Place &place, const std::vector<Source> &sources);

} // namespace kiln::diagnose
