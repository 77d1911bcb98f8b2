// SPDX-License-Identifier: Apache-2.0
//
// What the fuzzer of manifests does with `kiln scale`, which a build without KILN_PARALLEL does not have.
#pragma once

#include "compiler/inspect/Inspection.h"

namespace kiln_fuzz {

/// Predicts the costs of a library, and requires that there is a text for them or for the error.
void predict(const kiln::Inspection &inspection);

} // namespace kiln_fuzz
