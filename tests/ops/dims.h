// SPDX-License-Identifier: Apache-2.0
// The dynamic dimensions of the op tests: their bounds are not multiples of a tile.
#pragma once

#include <kiln/generator.h>

inline constexpr kiln::Dim B{"batch", 1, 3};
inline constexpr kiln::Dim T{"rows", 1, 37};
inline constexpr kiln::Dim S{"others", 1, 41};
inline constexpr kiln::Dim C{"context", T, 53}; // at least the number of rows
