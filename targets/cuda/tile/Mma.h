// SPDX-License-Identifier: Apache-2.0
//
// Products of small matrices by the tensor cores of sm_80, and how what they multiply comes out of shared memory. All
// 32 threads of a warp do each of these together.
#pragma once

#include "targets/cuda/tile/Builder.h"

namespace kiln::cuda::tile {

/// What tensor cores multiply. Sums are f32.
enum class MmaType { F16, BF16, TF32 };

/// What a factor is in memory: f16, bf16, or f32 for tf32.
Type elementOf(Builder &b, MmaType type);
int64_t bytesOf(MmaType type);

/// Of the depth that one instruction multiplies: 16 elements of 16 bits, or 8 tf32.
constexpr int64_t mmaDepthBytes = 32;

/// Four matrices of eight rows of 16 bytes by one ldmatrix, an i32 for each. Lane 8 m + r says where row r of matrix m
/// starts, at a multiple of 16 bytes. Lane 4 g + t gets the bytes from 4 t on of row g; transposed, of matrices of
/// 16-bit elements, those of column g.
Values loadMatrices(Builder &b, Value address, bool isTransposed);

/// An f32 as tensor cores take tf32, an i32: rounded to ten bits behind the point, to nearest.
Value roundToTf32(Builder &b, Value x);

/// A register of a factor, of as many f32 as it holds: rounded to the type.
Value packFactors(Builder &b, MmaType type, ValueRange numbers);

/// sums + x y^T by one mma.sync: x of 16 rows, y of eight, the four sums of a lane. As lanes get them: x is rows 0 to 7
/// and 8 to 15 of the first 16 bytes of the depth, then those of the other 16; y the first 16 bytes and the others.
/// Sum 2 h + i of lane 4 g + t is that of x's row 8 h + g and y's row 2 t + i.
Values multiplyAdd(Builder &b, MmaType type, llvm::ArrayRef<Value> x, llvm::ArrayRef<Value> y, ValueRange sums);

} // namespace kiln::cuda::tile
