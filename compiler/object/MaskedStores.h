// SPDX-License-Identifier: Apache-2.0
//
// A workaround for LLVM 22 on x86-64 with AVX-512VL: a masked store of integers that were truncated, whose mask is a
// constant with one lane, stores all bytes of that lane before it was truncated, and so overwrites what follows.
#pragma once

namespace llvm {
class Function;
} // namespace llvm

namespace kiln {

/// Replaces each masked store with a constant mask of one lane by a store of that lane. Masks are constants only when
/// the function was optimised.
void storeSingleLanes(llvm::Function &function);

} // namespace kiln
