// SPDX-License-Identifier: Apache-2.0
//
// Edits of a finished graph, which a reduction applies. An edit may leave dead nodes and inconsistent types; tidied()
// makes the graph valid again, if that is possible.
#pragma once

#include <functional>
#include <optional>

#include "tests/fuzz/RandomGraph.h"
#include "tests/fuzz/Shapes.h"

namespace kiln::fuzz {

/// Parses an extent that limitText wrote.
Dim dimOf(const std::string &text, const std::vector<Symbol> &symbols);

/// Renumbers the nodes in the order of a trace, with effects on states in the order of a spec.
Graph ordered(Graph graph);

/// Infers types and numbers again, without dead nodes; returns nothing if the result is not a well-formed model whose
/// indices are within their tables.
std::optional<RandomModel> tidied(RandomModel model);

/// Returns the region of each node, whether it is an argument or not.
std::vector<int> homesOf(const Graph &graph);
/// Returns the number of the entry that encloses the region, or -1.
int entryAround(const Graph &graph, int region);
/// Replaces `from` by `to` wherever it is an operand or a result.
void replaceUses(Graph &graph, int from, int to);
/// Adds an input to the entry.
int addInput(RandomModel &model, int entry, const Type &type, const RandomModel::Input &range);
/// Replaces the node by an input of its entry, with a range that suits its users if they take it as an index.
void replaceByInput(RandomModel &model, int node);

/// Maps every extent that is stated rather than inferred: those of inputs, parameters, constants and states, of
/// operations that state their result's shape, and of the limits of inputs.
void replaceExtents(RandomModel &model, const std::function<Dim(const Dim &)> &replaced);

} // namespace kiln::fuzz
