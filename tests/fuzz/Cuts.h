// SPDX-License-Identifier: Apache-2.0
//
// The families of edits that make a model smaller. Each family lists its edits of a model, the largest first; the
// reduction tidies and checks the edited model.
#pragma once

#include <functional>
#include <vector>

#include "tests/fuzz/RandomGraph.h"

namespace kiln::fuzz {

using Edit = std::function<void(RandomModel &)>;
using Cuts = std::vector<Edit> (*)(const RandomModel &);

// CutsOfNodes.cpp
std::vector<Edit> cutEntries(const RandomModel &model);
std::vector<Edit> cutResults(const RandomModel &model);
std::vector<Edit> cutEffects(const RandomModel &model);
std::vector<Edit> cutToInputs(const RandomModel &model);
std::vector<Edit> cutToOperands(const RandomModel &model);
std::vector<Edit> cutToAncestors(const RandomModel &model);
std::vector<Edit> cutInputs(const RandomModel &model);
// CutsOfLoops.cpp
std::vector<Edit> cutStacks(const RandomModel &model);
std::vector<Edit> cutScans(const RandomModel &model);
std::vector<Edit> cutLoopResults(const RandomModel &model);
// CutsOfExtents.cpp
std::vector<Edit> cutSymbols(const RandomModel &model);
std::vector<Edit> cutExtents(const RandomModel &model);
std::vector<Edit> cutAttributes(const RandomModel &model);

/// Makes the entry return these nodes.
void giveBack(RandomModel &model, std::size_t entry, const std::vector<int> &results);

/// The cost that a reduction minimises: nodes above all, then extents and attributes.
std::int64_t costOf(const Graph &graph);

} // namespace kiln::fuzz
