// SPDX-License-Identifier: Apache-2.0
//
// Compares two graphs in everything that the compiler reads.
#pragma once

#include <string>

#include "kiln/graph.h"

namespace kiln::fuzz {

/// Describes the first difference; returns an empty string if there is none.
std::string difference(const Graph &a, const Graph &b);

} // namespace kiln::fuzz
