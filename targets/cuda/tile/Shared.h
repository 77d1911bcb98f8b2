// SPDX-License-Identifier: Apache-2.0
//
// The shared memory of a block: its dynamic part as f32, which strategies lay out themselves, allocations of a fixed
// size, barriers, and asynchronous copies to it.
#pragma once

#include "targets/cuda/tile/Builder.h"

namespace kiln::cuda::tile {

/// Allocates `count` elements for each of the current kernel's blocks and returns their address. They are not
/// initialised.
Value addShared(Builder &b, Type element, int64_t count);

/// Returns the start of a block's dynamic shared memory, a multiple of `alignment` bytes, which is the same in all
/// kernels of a module. The launch sets its size.
Value sharedMemory(Builder &b, int64_t alignment = 128);

/// Advances an address by `count` f32.
Value advance(Builder &b, Value address, Value count);
Value advance(Builder &b, Value address, int64_t count);

/// Load and store one f32, or four of them at an address that is a multiple of 16 bytes, in shared or in global
/// memory.
Value loadOne(Builder &b, Value address);
Values loadFour(Builder &b, Value address);
void storeOne(Builder &b, Value value, Value address);
void storeFour(Builder &b, llvm::ArrayRef<Value> values, Value address);

/// Loads `count` contiguous elements, 2 to 16 bytes, at an address that is a multiple of their bytes.
Values loadVector(Builder &b, Type element, int64_t count, Value address);
/// Like loadVector(), for f32, f16 or bf16, converted to f32.
Values loadFloats(Builder &b, Type element, int64_t count, Value address);
void storeVector(Builder &b, llvm::ArrayRef<Value> values, Value address);

/// Returns whether an address is a multiple of `bytes`, a power of two.
Value isMultiple(Builder &b, Value address, int64_t bytes);

/// Makes all threads of the block wait for each other, and see each other's writes.
void barrier(Builder &b);
/// Synchronises the 32 threads of a warp.
void syncWarp(Builder &b);

/// Copies 4, 8 or 16 bytes asynchronously from global to shared memory, between multiples of that size; writes zeros
/// and reads nothing if `isThere` is false.
void copyBytesAsync(Builder &b, Value to, Value from, int64_t bytes, Value isThere);
/// Commits the thread's copies since the last group as a group.
void commitCopies(Builder &b);
/// Waits until at most `groups` groups of the thread are in flight.
void awaitCopies(Builder &b, int64_t groups);

} // namespace kiln::cuda::tile
