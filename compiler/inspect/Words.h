// SPDX-License-Identifier: Apache-2.0
//
// Prints the content of a library as text.
#pragma once

#include "compiler/inspect/Inspection.h"

namespace kiln {

/// Format with three digits: "1.25 MiB", "12.3 GFLOP" (1e9 operations), "4.2 ms".
std::string describeBytes(double bytes);
std::string describeOperations(double operations);
std::string describeSeconds(double seconds);

std::string printWords(const Inspection &inspection);

} // namespace kiln
