// SPDX-License-Identifier: Apache-2.0
//
// Which products of matrices wgmma does, and their inputs as tensor maps: f16 and bf16 as they lie in memory, f32 as
// tf32 where the kernel says so. Several loops that count as one lie next to each other, in their order.
#pragma once

#include "targets/cuda/ContractionMatch.h"
#include "targets/cuda/tile/Hopper.h"
#include <array>

namespace kiln::cuda {

/// An input of [batch, rows, depth], where rows of b are the product's columns.
struct WgmmaInput {
  TensorMap map;     // without its box
  bool isAlongDepth; // depth lies side by side, not rows
};

struct WgmmaProduct {
  tile::MmaType type;
  WgmmaInput a, b;

  int64_t depth() const { return 128 / tile::bytesOf(type); } // elements of a line of shared memory
};

/// Whether all pitches are known, so that tensors at multiples of 16 bytes have tensor maps whatever their extents are.
bool isSureToBeMapped(const WgmmaProduct &product);

std::optional<WgmmaProduct> findWgmmaProduct(const StepContext &context, const Contraction &contraction);

} // namespace kiln::cuda
