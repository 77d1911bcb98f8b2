// SPDX-License-Identifier: Apache-2.0
//
// The shapes of published decoders, for the specs and for programs that check a checkpoint's config.json.
#pragma once

#include <cstdint>

namespace llama {

struct Shape {
  std::int64_t vocabulary, layers, width;
  int heads, key_value_heads;
  std::int64_t hidden;
  std::int64_t context; // tokens that a text may have
  double base = 10000;  // of the rotary positions
  double epsilon = 1e-5;
};

inline constexpr Shape tiny_llama_1b{32000, 22, 2048, 32, 4, 5632, 2048};
inline constexpr Shape llama_2_7b{32000, 32, 4096, 32, 32, 11008, 4096};
inline constexpr Shape llama_2_70b{32000, 80, 8192, 64, 8, 28672, 4096};
inline constexpr Shape llama_3_8b{128256, 32, 4096, 32, 8, 14336, 8192, 500000};
inline constexpr Shape mistral_7b{32000, 32, 4096, 32, 8, 14336, 4096};

/// One to run at once, of the same kind.
inline constexpr Shape small{512, 4, 128, 8, 2, 352, 256, 500000};
/// The one that is trained here, on the King James Bible.
inline constexpr Shape king_james{2000, 4, 128, 4, 2, 352, 256};

} // namespace llama
