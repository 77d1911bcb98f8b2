// SPDX-License-Identifier: Apache-2.0
//
// Writes a model as a self-contained project: its spec, its program, and copies of the headers that these use.
#pragma once

#include "tools/new/Family.h"

namespace kiln::newproject {

/// Writes the project to options.out, which must not contain one.
void writeProject(const Model &model, const Fields &fields, const Options &options);

} // namespace kiln::newproject
