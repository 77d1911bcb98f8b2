// SPDX-License-Identifier: Apache-2.0
//
// Reduces a failing model to a smaller one that still fails.
#pragma once

#include <functional>

#include "tests/fuzz/RandomGraph.h"

namespace kiln::fuzz {

/// Calls `fails` on smaller, well-formed candidates, at most `tries` times. The result fails if the model did.
RandomModel reduce(const RandomModel &model, const std::function<bool(const RandomModel &)> &fails, int tries = 400);

} // namespace kiln::fuzz
