// SPDX-License-Identifier: Apache-2.0
//
// The amplifier in an audio plug-in. prepare() does the slow work; process() runs on the audio thread.
#pragma once

#include "amp.hpp"
#include <algorithm>
#include <cstring>

#if defined(__clang__) && __clang_major__ >= 20
#define EFFECT_NONBLOCKING [[clang::nonblocking]] // checked by clang's RealtimeSanitizer
#else
#define EFFECT_NONBLOCKING
#endif

class Effect {
public:
  /// Reads a file and allocates, so it must not be called on the audio thread.
  kiln_status_t prepare(const char *weights, kiln_error_t *error) { return model.bind(weights, error); }

  /// Resets the state of the model to zeros, the initial state.
  void reset() { std::memset(arena, 0, AMP_STATE_BYTES); }

  /// Processes a block of any size in place. If the model fails, which cannot happen here after prepare(), the input is
  /// passed through.
  void process(float *block, std::size_t samples) noexcept EFFECT_NONBLOCKING {
    while (samples > 0) {
      const std::size_t part = std::min<std::size_t>(samples, AMP_PLAY_SAMPLES_MAX);
      std::copy_n(block, part, clean);
      if (model.play(call, {clean, part}, {block, part}) != KILN_OK)
        std::copy_n(clean, part, block);
      block += part;
      samples -= part;
    }
  }

private:
  amp::Model model;
  alignas(KILN_ARENA_ALIGNMENT) std::byte arena[AMP_PLAY_ARENA_BYTES(1)]{};
  float clean[AMP_PLAY_SAMPLES_MAX];
  const kiln_call_t call{arena, sizeof arena, nullptr, nullptr};
};
