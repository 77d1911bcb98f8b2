// SPDX-License-Identifier: Apache-2.0
//
// Changes of a finished graph: what a reduction is made of. An edit may leave nodes that nothing needs and types that
// no longer fit; tidied() makes a graph of it again, if there is one.
#pragma once

#include <functional>
#include <optional>

#include "tests/fuzz/RandomGraph.h"
#include "tests/fuzz/Shapes.h"

namespace kiln::fuzz {

/// The extent that limitText wrote.
Dim dimOf(const std::string &text, const std::vector<Symbol> &symbols);

/// The order of a trace, in which what changes states stands as its spec would have it, too.
Graph ordered(Graph graph);

/// Numbers and types anew, without what nothing needs; nothing if that is no well-formed model whose indices are within
/// their tables.
std::optional<RandomModel> tidied(RandomModel model);

/// By node: the region that it stands in, as an argument or not.
std::vector<int> homesOf(const Graph &graph);
/// The entry around the region, by its number; -1 if there is none.
int entryAround(const Graph &graph, int region);
/// Wherever `from` is an operand or a result, `to` is instead.
void replaceUses(Graph &graph, int from, int to);
/// A new input of the entry.
int addInput(RandomModel &model, int entry, const Type &type, const RandomModel::Input &range);
/// The node becomes an input of its entry, which may hold what its users take as indices.
void replaceByInput(RandomModel &model, int node);

/// Every extent that is stated rather than inferred: those of inputs, parameters, constants, states, and of operations
/// that have them from their result; limits of inputs with them.
void replaceExtents(RandomModel &model, const std::function<Dim(const Dim &)> &replaced);

} // namespace kiln::fuzz
