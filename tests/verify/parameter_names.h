// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kiln/graph.h"

namespace kiln::testing {

/// Returns "h.1.mlp.weight" for "h.{}.mlp.weight": copies of nested stacks count the innermost layers first.
inline std::string nameOf(const Graph &graph, const Parameter &parameter, std::int64_t copy) {
  std::string name = graph.name(parameter);
  for (int at = parameter.scope; at > 0; at = graph.scopes[at].parent)
    if (const std::int64_t layers = graph.scopes[at].copies; layers > 0) {
      name.replace(name.rfind("{}"), 2, std::to_string(copy % layers));
      copy /= layers;
    }
  return name;
}

} // namespace kiln::testing
