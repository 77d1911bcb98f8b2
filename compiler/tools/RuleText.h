// SPDX-License-Identifier: Apache-2.0
//
// Converts the text of a broken rule from the DSL's form to the one that `kiln` prints.
#pragma once

#include "compiler/tools/CompilerOutput.h"

namespace kiln::diagnose {

/// The parts of "block.down: RULE [label]: got G, expected E (spec.cpp:14)".
struct Told {
  std::string path, rule, label, got, expected;
  Place place; // the file has no folder
};

/// Splits a text in its parts. `hasPath`: whether it may begin with a path.
Told readTold(std::string text, bool hasPath);

/// Returns text such as "block.down: linear: wrong input width; expected 768, got 512 [linear_c1]".
std::string textOf(const Told &told);

} // namespace kiln::diagnose
