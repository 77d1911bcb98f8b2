// SPDX-License-Identifier: Apache-2.0
//
// A graph as a spec that a person can read and compile: what a random model or a reduced one is shown as.
#pragma once

#include <string>

#include "kiln/graph.h"

namespace kiln::fuzz {

/// A whole .cpp of a model `Fuzzed`, with KILN_MODEL(fuzzed, Fuzzed). It traces to the same graph, plain layers being
/// part of the names of what they own.
std::string printSpec(const Graph &graph);
/// The same without the include of kiln/generator.h and without KILN_MODEL; the model gets this name.
std::string printModel(const Graph &graph, const std::string &name);

} // namespace kiln::fuzz
