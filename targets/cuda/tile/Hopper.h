// SPDX-License-Identifier: Apache-2.0
//
// Instructions of compute capability 9.0: mbarriers in shared memory, which count arrivals and bytes; TMA copies of
// tensor boxes, which complete on them; and wgmma, by which a warpgroup multiplies matrices in shared memory.
// Addresses of shared memory are i32 here. Instructions are inline assembly, since the code generator ends the process
// at ops that it cannot select. Each instruction either is executed by all lanes of a warp, or concerns only the
// threads that execute it.
#pragma once

#include "targets/cuda/tile/Mma.h"

namespace kiln::cuda::tile {

/// Returns a pointer to shared memory as an integer.
Value sharedAddress(Builder &b, Value pointer);
/// Returns the index of the thread's warp in its block, which the assembler knows to be the same in all lanes.
Value warpOf(Builder &b, Value thread);
/// Returns the number of blocks in the grid.
Value gridSize(Builder &b);

//===- Barriers ----------------------------------------------------------===//

/// Initialises an mbarrier of eight bytes, whose phases complete after this number of arrivals and the expected bytes.
/// The first phase has parity 0.
void initBarrier(Builder &b, Value barrier, int64_t arrivals);
/// Makes barriers visible to asynchronous copies. The thread that initialised them calls this.
void publishBarriers(Builder &b);
void arrive(Builder &b, Value barrier);
/// Arrives in the threads for which `number` is 0, by a predicate and without a branch, around which the assembler
/// allows no wgmma in flight.
void arriveWhereZero(Builder &b, Value barrier, Value number);
/// Arrives at the barrier that has the same place in the shared memory of another block of the cluster.
void arriveAt(Builder &b, Value barrier, Value block);
void arriveExpecting(Builder &b, Value barrier, int64_t bytes);
/// Waits until the phase of this parity, an i32, completes. The phase before the first one counts as complete.
void awaitPhase(Builder &b, Value barrier, Value parity);

/// Makes `threads` threads of the block, whole warps, wait for each other at the named barrier `number`, 1 to 15, and
/// see each other's writes. tile::barrier uses barrier 0.
void barrierAmong(Builder &b, Value number, int64_t threads);
/// Orders the thread's reads and writes of shared memory before wgmma and TMA accesses to the same memory that follow
/// the next barrier.
void orderBeforeCopies(Builder &b);

/// Makes all threads of the cluster's blocks wait for each other. No block may access another block's shared memory
/// before the first cluster barrier, and none may after the last one, when a block may have ended.
void clusterBarrier(Builder &b);
//===- Shared memory of other blocks -------------------------------------===//

/// Returns the address of the same place in the shared memory of another block of the cluster.
Value addressIn(Builder &b, Value address, Value block);
/// Loads four f32 from such an address, a multiple of 16.
Values loadFourFrom(Builder &b, Value address);

//===- Copies ------------------------------------------------------------===//

/// Copies the box that begins at these coordinates, the innermost dimension first, to shared memory by TMA, with zeros
/// outside of the tensor; its bytes arrive at the barrier. `map`: from Builder::addTensorMap. `blocks`: the first
/// blocks of the cluster, this many, receive the box at the same places (multicast); 1: only the block itself.
void copyBox(Builder &b, Value to, Value map, llvm::ArrayRef<Value> at, Value barrier, int64_t blocks = 1);

//===- wgmma -------------------------------------------------------------===//

/// Changes the number of registers that each thread of the warpgroup may use from here on (setmaxnreg), to fewer or to
/// more than before.
void setRegisters(Builder &b, int64_t count, bool isMore);

/// Returns the wgmma descriptor of a matrix in shared memory in rows of 128 bytes with the 128-byte swizzle, in groups
/// of eight rows; the address is a multiple of 1024 bytes. `stride`: bytes from eight rows to the next. `leading`:
/// bytes to where a row continues after 128 bytes.
Value matrixDescriptor(Builder &b, Value address, int64_t leading, int64_t stride);
/// Returns the descriptor of what is `bytes` further on, as i32 or as a constant.
Value advanceDescriptor(Builder &b, Value descriptor, Value bytes);
Value advanceDescriptor(Builder &b, Value descriptor, int64_t bytes);

/// A wgmma of 64 x n accumulators: 64 x K of the one matrix and n x K of the other; K is the elements of 32 bytes.
struct MatrixProduct {
  MmaType type;
  int64_t n;
  bool transposesA, transposesB; // rows are contiguous, not K; only for 16-bit types

  int64_t sumsOfThread() const { return n / 2; }
};

/// Must be called before wgmma with accumulators that other instructions have written (wgmma.fence).
void beginProducts(Builder &b);
/// Adds to the accumulators, which are valid once the group is complete. Accumulator 4 j + 2 i + e of a thread belongs
/// to row 16 (warp % 4) + lane / 4 + 8 i and column 8 j + 2 (lane % 4) + e.
Values addProduct(Builder &b, const MatrixProduct &product, Value a, Value c, mlir::ValueRange sums);
/// Like addProduct(), for accumulators that start at 0.
Values firstProduct(Builder &b, const MatrixProduct &product, Value a, Value c);
/// Like addProduct() above, with `a` in registers, four in each lane: x of multiplyAdd() in Mma.h, for the warp's 16
/// rows.
Values addProduct(Builder &b, const MatrixProduct &product, mlir::ArrayRef<Value> a, Value c, mlir::ValueRange sums);
/// Commits the wgmma since the last group as a group.
void commitProducts(Builder &b);
/// Waits until at most `groups` groups are in flight.
void awaitProducts(Builder &b, int64_t groups);
/// Waits until at most `groups` groups are in flight: returns the accumulators of one that is not.
Values awaitSums(Builder &b, mlir::ValueRange sums, int64_t groups = 0);
/// Keeps the assembler from waiting before `computed`, an f32 of 0 or more, is computed: otherwise it hoists a wait
/// above everything that does not need the accumulators. `shared`: an address of shared memory; nothing is stored to
/// it.
void keepBefore(Builder &b, Value computed, Value shared);

/// Computes 2^x of an f32 with a relative error of 2^-22; results below 2^-126 become 0.
Value exponential2(Builder &b, Value x);

} // namespace kiln::cuda::tile
