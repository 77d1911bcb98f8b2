// SPDX-License-Identifier: Apache-2.0
#include "Batches.h"

#include <algorithm>

namespace kiln::fuzz {

Graph withBatches(Graph graph) {
  Symbol rows; // the dynamic row dimension of all batched entries
  for (Entry &entry : graph.entries) {
    Symbol own = rows;
    auto mayBeBatched = [&](int node) {
      const std::vector<Dim> &shape = graph.nodes[node].shape;
      if (shape.empty() || !std::all_of(shape.begin() + 1, shape.end(), [](const Dim &dim) { return dim.fixed(); }))
        return false;
      if (shape[0].fixed())
        return true;
      if (!shape[0].named() || (own.present() && !(own == shape[0].symbols[0])))
        return false;
      own = shape[0].symbols[0];
      return true;
    };
    const Region &region = graph.regions[entry.region];
    if (!std::all_of(region.arguments.begin(), region.arguments.end(), mayBeBatched) ||
        !std::all_of(region.results.begin(), region.results.end(), mayBeBatched))
      continue;
    entry.sequences = mostSequences;
    rows = own;
  }
  return graph;
}

} // namespace kiln::fuzz
