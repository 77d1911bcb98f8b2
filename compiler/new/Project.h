// SPDX-License-Identifier: Apache-2.0
//
// A model as a project that builds by itself: its spec, its program, and copies of the headers that these use.
#pragma once

#include "compiler/new/Family.h"

namespace kiln::newproject {

/// Writes the project into options.out, which must not hold one.
void writeProject(const Model &model, const Fields &fields, const Options &options);

} // namespace kiln::newproject
