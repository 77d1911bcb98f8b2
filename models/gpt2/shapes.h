// SPDX-License-Identifier: Apache-2.0
//
// The shapes of GPT-2, for the specs and for programs that check a checkpoint's config.json.
#pragma once

#include <cstdint>

namespace specs {

struct Gpt2Shape {
  std::int64_t layers, width;
  int heads;
  std::int64_t vocabulary = 50257, context = 1024;
  std::int64_t hidden = 4 * width; // of the MLPs
  double epsilon = 1e-5;
};

inline constexpr Gpt2Shape gpt2_small{12, 768, 12}, gpt2_medium{24, 1024, 16}, gpt2_large{36, 1280, 20},
    gpt2_xl{48, 1600, 25};
/// The shapes that are trained here, on the King James Bible; the second is the draft of the first.
inline constexpr Gpt2Shape gpt2_king_james{3, 128, 4, 2000, 256}, gpt2_king_james_draft{1, 64, 2, 2000, 256};

} // namespace specs
