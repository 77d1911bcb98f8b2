// SPDX-License-Identifier: Apache-2.0
//
// Small matrix products by the tensor cores of sm_80, and loads of their operands from shared memory. All 32 threads
// of a warp execute each of these together.
#pragma once

#include "targets/cuda/tile/Builder.h"

namespace kiln::cuda::tile {

/// The input types of tensor cores. Accumulators are f32.
enum class MmaType { F16, BF16, TF32 };

/// Returns the type of an input in memory: f16, bf16, or f32 for tf32.
Type elementOf(Builder &b, MmaType type);
int64_t bytesOf(MmaType type);

/// The bytes of K of one instruction: 16 elements of 16 bits, or 8 tf32.
constexpr int64_t mmaKBytes = 32;

/// Loads four matrices of eight rows of 16 bytes by one ldmatrix, an i32 for each. Lane 8 m + r holds the address of
/// row r of matrix m, a multiple of 16 bytes. Lane 4 g + t gets the bytes from 4 t on of row g; transposed, for
/// matrices of 16-bit elements, those of column g.
Values loadMatrices(Builder &b, Value address, bool isTransposed);

/// Rounds an f32 to tf32, as an i32 for tensor cores: to ten mantissa bits, to nearest.
Value roundToTf32(Builder &b, Value x);

/// Packs as many f32 as a fragment register holds, rounded to the type.
Value packFactors(Builder &b, MmaType type, ValueRange numbers);

/// Computes sums + x y^T by one mma.sync: x has 16 rows, y has eight, and a lane has four accumulators. In lane order,
/// x is rows 0 to 7 and 8 to 15 of the first 16 bytes of K, then those of the other 16; y is the first 16 bytes and
/// the others. Accumulator 2 h + i of lane 4 g + t belongs to x's row 8 h + g and y's row 2 t + i.
Values multiplyAdd(Builder &b, MmaType type, llvm::ArrayRef<Value> x, llvm::ArrayRef<Value> y, ValueRange sums);

} // namespace kiln::cuda::tile
