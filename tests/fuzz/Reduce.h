// SPDX-License-Identifier: Apache-2.0
//
// Makes a model that fails smaller, as long as it fails.
#pragma once

#include <functional>

#include "tests/fuzz/RandomGraph.h"

namespace kiln::fuzz {

/// Smaller and smaller models that still fail; `fails` is called on candidates, which are well formed, at most `tries`
/// times. The result fails if the model did.
RandomModel reduce(const RandomModel &model, const std::function<bool(const RandomModel &)> &fails, int tries = 400);

} // namespace kiln::fuzz
