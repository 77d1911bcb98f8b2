// SPDX-License-Identifier: Apache-2.0
//
// Prints a graph, such as a random model or a reduced one, as a spec that a person can read and compile.
#pragma once

#include <string>

#include "kiln/graph.h"

namespace kiln::fuzz {

/// Returns a complete .cpp file of a model `Fuzzed`, with KILN_MODEL(fuzzed, Fuzzed). It traces to the same graph;
/// plain layers are part of the names of what they own.
std::string printSpec(const Graph &graph);
/// As printSpec, without the include of kiln/generator.h and without KILN_MODEL; the model gets this name.
std::string printModel(const Graph &graph, const std::string &name);

} // namespace kiln::fuzz
