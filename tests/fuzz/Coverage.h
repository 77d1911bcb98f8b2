// SPDX-License-Identifier: Apache-2.0
//
// What a graph has in it, by name: operations, attributes, and combinations that the compiler treats each in its way.
#pragma once

#include <map>
#include <string>

#include "kiln/graph.h"

namespace kiln::fuzz {

/// Adds 1 to each thing that the graph has, however often.
void count(const Graph &graph, std::map<std::string, int> &things);
/// The things that random graphs are to have, each with its least number in 5,000 of them.
const std::map<std::string, int> &expectedThings();

} // namespace kiln::fuzz
