// SPDX-License-Identifier: Apache-2.0
//
// Memory that the threads of a block share, of a fixed size, and the barriers between who writes and who reads there.
#pragma once

#include "targets/cuda/tile/Builder.h"

namespace kiln::cuda::tile {

/// The address of so many elements that the current kernel's blocks have each for themselves. What they hold at first
/// is not known.
Value addShared(Builder &b, Type element, int64_t count);

/// Waits for all threads of the block; what they wrote before, each of them reads behind it.
void syncBlock(Builder &b);
/// The same among the 32 threads of a warp.
void syncWarp(Builder &b);

} // namespace kiln::cuda::tile
