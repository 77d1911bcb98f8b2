// SPDX-License-Identifier: Apache-2.0
//
// Reads the text of a broken rule.
#pragma once

#include "tools/kiln/CompilerOutput.h"

namespace kiln::diagnose {

/// The parts of "block.down: linear: wrong input width; expected 768, got 512 [linear_c1] (spec.cpp:14)".
struct Told {
  std::string rule, label; // `rule`: all before the label
  std::string got;         // the last part of `rule`
  Place place;             // the file has no folder
};

/// Splits a text in its parts.
Told readTold(std::string text);

/// Returns the text without its place.
std::string textOf(const Told &told);

} // namespace kiln::diagnose
