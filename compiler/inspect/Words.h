// SPDX-License-Identifier: Apache-2.0
//
// What a library holds, in words.
#pragma once

#include "compiler/inspect/Inspection.h"

namespace kiln {

/// "1.25 MiB", "12.3 GFLOP" (of 1e9), "4.2 ms": three digits.
std::string describeBytes(double bytes);
std::string describeOperations(double operations);
std::string describeSeconds(double seconds);

std::string printWords(const Inspection &inspection);

} // namespace kiln
