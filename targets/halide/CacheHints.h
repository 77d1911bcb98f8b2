// SPDX-License-Identifier: Apache-2.0
//
// Halide 14 knows one request for a cache line, PREFETCHNTA. An Intel CPU with a victim cache behind the second level
// puts such a line into the first level alone: weights of 154 MB were read at 6 GB/s with it, 10 without, 11 with
// PREFETCHT0, which asks for the line in all levels (Cascade Lake, November 2026). The two instructions differ in a
// field of three bits.
#pragma once

#include "llvm/Support/Error.h"
#include <string>

namespace kiln::halide {

/// Makes every PREFETCHNTA in the code of a relocatable ELF object for x86-64 a PREFETCHT0; an error if code cannot be
/// decoded.
llvm::Error requestIntoAllCaches(std::string &object);

/// The same in assembly text.
std::string requestIntoAllCachesInText(std::string assembly);

} // namespace kiln::halide
