// SPDX-License-Identifier: Apache-2.0
//
// Batched entries: one call of NAME_<entry>_batch computes, for several sequences, what one call of the entry per
// sequence would compute. The rows of the sequences are concatenated along the first axis of each input and result. If
// that axis is a symbolic dimension, each sequence has its own value of it. A batched entry adds two symbols to the
// model's: the number of sequences of a call, and their total number of rows.
#pragma once

#include <string>

#include "kiln/text.h"
#include "kiln/trace.h"

namespace kiln {

/// The largest number of sequences in one call of a batched entry.
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

/// The symbols that batched entries add to those of a model.
struct BatchExtents {
  Symbol sequences; // number of sequences; absent if the model has no batched entry
  Symbol own;       // rows of one sequence, such as "tokens"; absent if every sequence has a fixed number of rows
  Symbol rows;      // total rows of all sequences of a call, at most the maximum of one sequence
};

/// Returns the name of the batched form of an entry.
inline std::string batch_name(const std::string &entry) { return entry + "_batch"; }

/// Requires that the rules of batched entries have been checked.
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

/// Checks the rules of batched entries; called after finish().
constexpr void check_batches(Tracer &tracer) {
  const Graph &graph = tracer.traced();
  const Entry *first = nullptr;
  Symbol own;
  for (const Entry &entry : graph.entries) {
    if (entry.sequences == 0)
      continue;
    if (entry.sequences < 1 || entry.sequences > most_sequences)
      tracer.fail(rules::batch_c1, as_written(entry.sequences));
    if (first && first->sequences != entry.sequences)
      tracer.fail(rules::batch_c2, as_written(entry.sequences), as_written(first->sequences));
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
