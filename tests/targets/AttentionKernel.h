// SPDX-License-Identifier: Apache-2.0
//
// Attention kernels, their inputs, and their results by a loop in f64.
#pragma once

#include "Harness.h"
#include <cstdint>

namespace kiln::testing {

struct AttentionCase {
  int heads = 2, keyHeads = 2, headDim = 64, bound = 130;
  bool isCausal = false, hasMask = false, hasLengths = false;
  int window = 0;              // with causal masks; 0: none
  bool isCross = false;        // keys have their own symbol
  bool isPlanar = false;       // keys and values are [batch, heads, keys, headDim]: contiguous per head
  int mostQueries = 0;         // 0: the bound
  std::string element = "f32"; // of keys and values; unless f32, inputs are multiples of 1/16, exact in all float types
  std::string queries = "f32"; // of queries; unless f32, they are multiples of 1/16 too
  bool isOffset = false;       // causal masks: whether the last query sees the last key, or query i key i
  std::string attributes;      // kernel attributes
};

constexpr int attentionBatch = 3;

std::string attentionKernel(const AttentionCase &s);

/// Returns random inputs in the order of the kernel's arguments. `mostKeys` bounds the lengths; keys and values from
/// `firstNan` on are NaN. A third of the pairs is masked, never all keys of a query.
std::vector<Tensor> attentionInputs(const AttentionCase &s, int64_t queries, int64_t keys, int64_t mostKeys = INT32_MAX,
                                    int64_t firstNan = INT32_MAX);

/// Skips keys that do not count, even if they are NaN. Returns 0 where no key counts.
Tensor expectedAttention(const AttentionCase &s, int64_t queries, int64_t keys, const std::vector<Tensor> &inputs);

} // namespace kiln::testing
