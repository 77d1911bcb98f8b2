// SPDX-License-Identifier: Apache-2.0
//
// Batched entries: NAME_<entry>_batch does for several sequences what calls of the entry would do for each. Along the
// first axis of an input or a result the rows of the sequences lie one after another; where it is a named extent, each
// sequence has as many as it says. Two extents are added to the model's: how many sequences a call has, and how many
// rows they have together.
#pragma once

#include <string>

#include "kiln/text.h"
#include "kiln/trace.h"

namespace kiln {

/// Of one call of a batched entry.
inline constexpr int most_sequences = 256;

namespace detail {

constexpr Symbol batch_symbol(const char *name, std::int64_t max) {
  Symbol symbol;
  for (std::size_t i = 0; name[i] && i + 1 < Symbol::capacity; ++i)
    symbol.name[i] = name[i];
  symbol.min = 1;
  symbol.max = max;
  return symbol;
}

} // namespace detail

/// What batched entries add to a model's named extents.
struct BatchExtents {
  Symbol sequences; // absent: the model has no batched entry
  Symbol own;       // the extent of rows that each sequence has, such as "tokens"; absent: all have fixed ones
  Symbol rows;      // their sum over the sequences of a call, at most as many as one sequence can have
};

/// What a batched entry is called for several sequences.
inline std::string batch_name(const std::string &entry) { return entry + "_batch"; }

/// Rules of a batched entry are checked before.
constexpr BatchExtents batch_extents(const Graph &graph) {
  BatchExtents extents;
  for (const Entry &entry : graph.entries)
    if (entry.sequences > 0) {
      extents.sequences = detail::batch_symbol("sequences", entry.sequences);
      for (const std::vector<int> *nodes :
           {&graph.regions[entry.region].arguments, &graph.regions[entry.region].results})
        for (int node : *nodes)
          if (const Dim &rows = graph.nodes[node].shape[0]; !rows.fixed())
            extents.own = rows.symbols[0];
    }
  if (extents.own.present())
    extents.rows = detail::batch_symbol("rows", extents.own.max);
  return extents;
}

namespace detail {

/// After finish().
constexpr void check_batches(Tracer &tracer) {
  const Graph &graph = tracer.traced();
  const Entry *first = nullptr;
  Symbol own;
  for (const Entry &entry : graph.entries) {
    if (entry.sequences == 0)
      continue;
    if (entry.sequences < 1 || entry.sequences > most_sequences)
      tracer.fail(rules::batch_c1, entry.sequences);
    if (first && first->sequences != entry.sequences)
      tracer.fail(rules::batch_c2, entry.sequences, first->sequences);
    first = &entry;
    for (const std::vector<int> *nodes : {&graph.regions[entry.region].arguments, &graph.regions[entry.region].results})
      for (int node : *nodes) {
        const std::vector<Dim> &shape = graph.nodes[node].shape;
        if (shape.empty() || !(shape[0].fixed() || shape[0].named())) {
          tracer.fail(rules::batch_c3, shape.empty() ? Dim(1) : shape[0]);
        } else if (!shape[0].fixed()) {
          if (own.present() && !(own == shape[0].symbols[0]))
            tracer.fail(rules::batch_c4, shape[0], own.name);
          own = shape[0].symbols[0];
        }
      }
  }
  if (first)
    for (const Symbol &symbol : tracer.extents())
      if (same_text(symbol.name, "sequences") || same_text(symbol.name, "rows"))
        tracer.fail(rules::batch_c5, symbol.name);
}

} // namespace detail
} // namespace kiln
