// SPDX-License-Identifier: Apache-2.0
//
// Names the features of a graph: operations, attributes, and combinations that the compiler treats differently.
#pragma once

#include <map>
#include <string>

#include "kiln/graph.h"

namespace kiln::fuzz {

/// Adds 1 to each feature that the graph has, however often it occurs.
void count(const Graph &graph, std::map<std::string, int> &things);
/// Returns the features that random graphs must have, each with its least number in 5,000 graphs.
const std::map<std::string, int> &expectedThings();

} // namespace kiln::fuzz
