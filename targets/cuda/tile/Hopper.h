// SPDX-License-Identifier: Apache-2.0
//
// What GPUs of compute capability 9.0 have besides: barriers in shared memory that count arrivals and bytes, copies of
// boxes of a tensor that they wait for, and products by four warps of what lies there. Addresses of shared memory are
// i32 here. Instructions are inline assembly, since the code generator ends the process at ops that it cannot select;
// each is one that all lanes of a warp meet, or that the threads that meet it do alone.
#pragma once

#include "targets/cuda/tile/Mma.h"

namespace kiln::cuda::tile {

/// A pointer to shared memory as a number.
Value sharedAddress(Builder &b, Value pointer);
/// The number of the thread's warp in its block, which the assembler knows to be the same in all lanes.
Value warpOf(Builder &b, Value thread);
/// How many blocks the grid has.
Value gridSize(Builder &b);

//===- Barriers ----------------------------------------------------------===//

/// A barrier of eight bytes whose phases are complete after so many arrivals and the bytes that are expected. The first
/// phase has parity 0.
void initBarrier(Builder &b, Value barrier, int64_t arrivals);
/// By the thread that initialised barriers: copies see them.
void publishBarriers(Builder &b);
void arrive(Builder &b, Value barrier);
/// By the threads for which this is 0, without a branch, around which the assembler lets no product be under way.
void arriveWhereZero(Builder &b, Value barrier, Value number);
/// At the barrier of that block of the cluster at the same place in its shared memory.
void arriveAt(Builder &b, Value barrier, Value block);
void arriveExpecting(Builder &b, Value barrier, int64_t bytes);
/// Waits until the phase of this parity, an i32, is complete; the one before the first one is.
void awaitPhase(Builder &b, Value barrier, Value parity);

/// So many threads of the block, whole warps, wait for each other at the barrier of this number, 1 to 15, and see what
/// the others have written. That of tile::barrier is 0.
void barrierAmong(Builder &b, Value number, int64_t threads);
/// What the thread has written to or read from shared memory comes before products and copies of boxes to the same
/// place, behind the next barrier.
void orderBeforeCopies(Builder &b);

/// All threads of the cluster's blocks wait for each other. Before the first time no block may reach another one's
/// shared memory, and none may after the last one, behind which a block may have ended.
void clusterBarrier(Builder &b);
//===- Shared memory of other blocks -------------------------------------===//

/// Where the same place is in the memory of that block of the cluster.
Value addressIn(Builder &b, Value address, Value block);
/// Four f32 from such an address, a multiple of 16.
Values loadFourFrom(Builder &b, Value address);

//===- Copies ------------------------------------------------------------===//

/// Brings the box that begins at these coordinates, the innermost dimension first, to shared memory, zeros for what is
/// outside of the tensor; its bytes arrive at the barrier. `map`: Builder::addTensorMap. `blocks`: so many of the
/// cluster, from the first one on, get it, at the same places; 1: the block alone.
void copyBox(Builder &b, Value to, Value map, llvm::ArrayRef<Value> at, Value barrier, int64_t blocks = 1);

//===- Products ----------------------------------------------------------===//

/// What each thread of the four warps may use from here on: fewer registers than before, or more.
void setRegisters(Builder &b, int64_t count, bool isMore);

/// A matrix in shared memory in rows of 128 bytes, swizzled by as many, eight of them together; the address is a
/// multiple of 1024 bytes. `stride`: bytes from eight rows to the next. `leading`: where a row goes on behind 128
/// bytes.
Value matrixDescriptor(Builder &b, Value address, int64_t leading, int64_t stride);
/// That of what lies so many bytes further, as i32 or known here.
Value advanceDescriptor(Builder &b, Value descriptor, Value bytes);
Value advanceDescriptor(Builder &b, Value descriptor, int64_t bytes);

/// 64 x n sums by 64 x k of the one matrix and n x k of the other; 32 bytes are k elements.
struct MatrixProduct {
  MmaType type;
  int64_t n;
  bool transposesA, transposesB; // rows lie side by side, not the depth; of 16 bits

  int64_t sumsOfThread() const { return n / 2; }
};

/// Before products whose sums were written otherwise.
void beginProducts(Builder &b);
/// Adds to the sums, which are known once the group is done. Sum 4 j + 2 i + e of a thread is that of row
/// 16 (warp % 4) + lane / 4 + 8 i and column 8 j + 2 (lane % 4) + e.
Values addProduct(Builder &b, const MatrixProduct &product, Value a, Value c, mlir::ValueRange sums);
/// The same from 0 on.
Values firstProduct(Builder &b, const MatrixProduct &product, Value a, Value c);
/// The same with a in registers, four of a lane: x of multiplyAdd() in Mma.h, of the warp's 16 rows.
Values addProduct(Builder &b, const MatrixProduct &product, mlir::ArrayRef<Value> a, Value c, mlir::ValueRange sums);
/// Makes a group of the products since the last one.
void commitProducts(Builder &b);
/// Waits until no more than so many groups are under way.
void awaitProducts(Builder &b, int64_t groups);
/// Waits until no more than so many groups are under way: the sums, of one that is not.
Values awaitSums(Builder &b, mlir::ValueRange sums, int64_t groups = 0);
/// Keeps the assembler from waiting before this is computed, an f32 of 0 or more: else it moves what waits ahead of all
/// that does not need the sums. `shared`: an address to which nothing is stored.
void keepBefore(Builder &b, Value computed, Value shared);

/// 2^x of an f32 with an error of 2^-22 of it; 0 for what is below 2^-126.
Value exponential2(Builder &b, Value x);

} // namespace kiln::cuda::tile
