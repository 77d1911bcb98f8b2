// SPDX-License-Identifier: Apache-2.0
//
// The one place that compares targets with the machine on which Kiln runs: the default targets, the host code of GPU
// libraries without CPU targets, and measurements follow it.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace kiln {

/// Whether this process could run code for that triple: the architecture, the operating system and the C library are
/// its own. Its CPU may still lack instructions.
bool isForThisMachine(llvm::StringRef triple);

} // namespace kiln
