// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kiln/graph.h"

namespace kiln::testing {

/// Returns "h.1.mlp.weight" for "h.{}.mlp.weight": copies of nested stacks count the innermost layers first.
inline std::string nameOf(const Graph &graph, const Parameter &parameter, std::int64_t copy) {
  return names_in_layers(graph.name(parameter), graph.layers(parameter.scope))[static_cast<std::size_t>(copy)];
}

} // namespace kiln::testing
