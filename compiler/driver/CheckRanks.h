// SPDX-License-Identifier: Apache-2.0
//
// Whether a model can be split among ranks, replicas and pipeline stages as the options say.
#pragma once

#include "compiler/driver/Lower.h"

namespace kiln {

/// Returns which of the rank choices is not supported, or an empty string.
std::string checkRanks(const Graph &graph, const LoweringOptions &lowering);

} // namespace kiln
