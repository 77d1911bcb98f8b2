// SPDX-License-Identifier: Apache-2.0
//
// What every case includes.
#pragma once

#include "kiln/dsl.h"

inline constexpr kiln::Dim B{"batch", 1, 8}, T{"tokens", 1, 64}, S{"source", 1, 128};
