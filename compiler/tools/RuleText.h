// SPDX-License-Identifier: Apache-2.0
//
// The text of a broken rule, as the language tells it and as `kiln` prints it.
#pragma once

#include "compiler/tools/CompilerOutput.h"

namespace kiln::diagnose {

/// "block.down: RULE [label]: got G, expected E (spec.cpp:14)" in its parts.
struct Told {
  std::string path, rule, label, got, expected;
  Place place; // of which the file has no folder
};

/// The parts of a text, with a path at its beginning if it has one.
Told readTold(std::string text, bool hasPath);

/// "block.down: linear: wrong input width; expected 768, got 512 [linear_c1]".
std::string textOf(const Told &told);

} // namespace kiln::diagnose
