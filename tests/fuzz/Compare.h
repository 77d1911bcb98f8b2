// SPDX-License-Identifier: Apache-2.0
//
// Whether two graphs are the same in everything that the compiler reads.
#pragma once

#include <string>

#include "kiln/graph.h"

namespace kiln::fuzz {

/// The first difference in words; empty if there is none.
std::string difference(const Graph &a, const Graph &b);

} // namespace kiln::fuzz
