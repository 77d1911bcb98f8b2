// SPDX-License-Identifier: Apache-2.0
//
// Data augmentation for images.
#pragma once

#include "first_weights.h"

#include <algorithm>

namespace support {

/// Shifts a 28 x 28 image by up to two pixels, with zero padding, and mirrors it at random; numbers of [0, 1].
inline void vary(const std::uint8_t *from, float *to, random_t *random) {
  constexpr int side = 28;
  const std::uint64_t drawn = random_bits(random);
  const int down = static_cast<int>(drawn % 5) - 2, right = static_cast<int>(drawn / 5 % 5) - 2;
  const bool isMirrored = drawn / 25 % 2;
  for (int y = 0; y < side; ++y)
    for (int x = 0; x < side; ++x) {
      const int row = y + down, column = (isMirrored ? side - 1 - x : x) + right;
      const bool isInside = std::min(row, column) >= 0 && std::max(row, column) < side;
      to[y * side + x] = isInside ? static_cast<float>(from[row * side + column]) / 255 : 0;
    }
}

} // namespace support
