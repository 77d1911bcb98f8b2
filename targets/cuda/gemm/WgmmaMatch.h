// SPDX-License-Identifier: Apache-2.0
//
// Matches contractions that wgmma can compute, with their inputs as tensor maps: f16 and bf16 as they are in memory,
// f32 as tf32 if the kernel allows it. Loops that form one flattened dimension are adjacent, in their order.
#pragma once

#include "targets/cuda/gemm/Match.h"
#include "targets/cuda/tile/Hopper.h"
#include <array>

namespace kiln::cuda {

/// An input of [batch, rows, k]; rows of b are columns of the result.
struct WgmmaInput {
  TensorMap map; // box not set yet
  bool isKMajor; // K is contiguous in memory, not the rows
};

struct WgmmaProduct {
  tile::MmaType type;
  WgmmaInput a, b;

  int64_t k() const { return 128 / tile::bytesOf(type); } // elements in a line of shared memory
};

/// Whether all pitches are known, so that tensors at multiples of 16 bytes have tensor maps whatever their extents
/// are.
bool isSureToUseTma(const WgmmaProduct &product);

std::optional<WgmmaProduct> findWgmmaProduct(const StageContext &context, const Contraction &contraction);

} // namespace kiln::cuda
