// SPDX-License-Identifier: Apache-2.0
//
// The custom function of the model: a biquad filter in transposed direct form II, for each of two channels. The
// coefficients are b0, b1, b2, a1, a2 of H(z) = (b0 + b1 z^-1 + b2 z^-2) / (1 + a1 z^-1 + a2 z^-2).
#include "tone.h"

enum { channels = 2 };

void tone_custom_biquad(int64_t samples, const float *audio, const float *coefficients, const float *memory,
                        float *filtered, float *next) {
  const float *k = coefficients;
  for (int channel = 0; channel < channels; ++channel) {
    float first = memory[channel], second = memory[channels + channel];
    for (int64_t n = 0; n < samples; ++n) {
      const float x = audio[n * channels + channel], y = k[0] * x + first;
      first = k[1] * x - k[3] * y + second;
      second = k[2] * x - k[4] * y;
      filtered[n * channels + channel] = y;
    }
    next[channel] = first;
    next[channels + channel] = second;
  }
}
