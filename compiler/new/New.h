// SPDX-License-Identifier: Apache-2.0
//
// `kiln new DIRECTORY`: from a published checkpoint to a project of a library and a program.
#pragma once

#include "compiler/new/Family.h"

namespace kiln::newproject {

/// Reads the checkpoint of options.folder and writes the project; an empty name or out is chosen, after the folder.
/// Gives notes for the user. Throws a Refusal.
std::vector<std::string> createProject(Options &options);

} // namespace kiln::newproject
