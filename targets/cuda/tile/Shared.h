// SPDX-License-Identifier: Apache-2.0
//
// The shared memory of a block: its dynamic part as f32, in which strategies find places by themselves, pieces of a
// fixed size, barriers, and copies that go there while threads compute.
#pragma once

#include "targets/cuda/tile/Builder.h"

namespace kiln::cuda::tile {

/// The address of so many elements that the current kernel's blocks have each for themselves. What they hold at first
/// is not known.
Value addShared(Builder &b, Type element, int64_t count);

/// Where a block's dynamic shared memory starts, at a multiple of so many bytes, which are the same in all kernels of a
/// module. How much there is, the launch says.
Value sharedMemory(Builder &b, int64_t alignment = 128);

/// The address so many f32 further.
Value advance(Builder &b, Value address, Value count);
Value advance(Builder &b, Value address, int64_t count);

/// One f32, or four of them at an address that is a multiple of 16 bytes, in shared or in global memory.
Value loadOne(Builder &b, Value address);
Values loadFour(Builder &b, Value address);
void storeOne(Builder &b, Value value, Value address);
void storeFour(Builder &b, llvm::ArrayRef<Value> values, Value address);

/// So many elements that lie side by side, at an address that is a multiple of their bytes: 2 to 16 in all.
Values loadVector(Builder &b, Type element, int64_t count, Value address);
/// The same of f32, f16 or bf16, in f32.
Values loadFloats(Builder &b, Type element, int64_t count, Value address);
void storeVector(Builder &b, llvm::ArrayRef<Value> values, Value address);

/// Whether an address is a multiple of so many bytes, a power of two.
Value isMultiple(Builder &b, Value address, int64_t bytes);

/// All threads of the block wait for each other, and see what the others have written.
void barrier(Builder &b);
/// The same among the 32 threads of a warp.
void syncWarp(Builder &b);

/// Copies 4, 8 or 16 bytes, between multiples of as many, from global to shared memory; writes zeros and reads nothing
/// if the source is not there.
void copyBytesAsync(Builder &b, Value to, Value from, int64_t bytes, Value isThere);
/// Makes a group of the copies that the thread has asked for since the last one.
void commitCopies(Builder &b);
/// Waits until no more than so many groups of the thread are under way.
void awaitCopies(Builder &b, int64_t groups);

} // namespace kiln::cuda::tile
