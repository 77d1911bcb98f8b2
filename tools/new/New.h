// SPDX-License-Identifier: Apache-2.0
//
// `kiln new DIRECTORY`: creates a project with a library and a program from a published checkpoint.
#pragma once

#include "tools/new/Family.h"

namespace kiln::newproject {

/// Reads the checkpoint of options.folder and writes the project. If name or out is empty, it is derived from the
/// folder. Returns notes for the user. Throws a Refusal.
std::vector<std::string> createProject(Options &options);

} // namespace kiln::newproject
