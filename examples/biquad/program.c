/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters two tones in blocks: a low-pass filter keeps the low one and removes the high one. */
#include "tone.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { channels = 2, block = 480, blocks = 100 };

/* Computes the coefficients of a low-pass filter with the cutoff in cycles per sample and a quality of 1 / sqrt(2), by
 * the bilinear transform. */
static void low_pass(double cutoff, float coefficients[5]) {
  const double w = tan(3.141592653589793 * cutoff), norm = 1 / (1 + sqrt(2) * w + w * w);
  const double values[5] = {w * w * norm, 2 * w * w * norm, w * w * norm, 2 * (w * w - 1) * norm,
                            (1 - sqrt(2) * w + w * w) * norm};
  for (int i = 0; i < 5; ++i)
    coefficients[i] = (float)values[i];
}

int main(void) {
  static _Alignas(KILN_ARENA_ALIGNMENT) char arena[TONE_PLAY_ARENA_BYTES(1)]; /* zeros: a new session */
  static float audio[block * channels], out[block * channels];
  kiln_error_t error;
  const kiln_call_t call = {.arena = arena, .arena_bytes = sizeof arena, .error = &error};
  float coefficients[5];
  low_pass(0.01, coefficients);

  tone_t *model = NULL;
  if (tone_create(NULL, &model, &error) != KILN_OK) { /* it has no weights to bind */
    printf("%s\n", error.message);
    return 1;
  }
  const double frequencies[channels] = {0.001, 0.1}; /* cycles per sample */
  double power[channels] = {0}, gain[channels];
  for (int number = 0; number < blocks; ++number) {
    for (int i = 0; i < block * channels; ++i)
      audio[i] = 0.1F * (float)sin(2 * 3.141592653589793 * frequencies[i % channels] * (number * block + i / channels));
    if (tone_play(model, &call, block, audio, coefficients, out) != KILN_OK) {
      printf("%s\n", error.message);
      return 1;
    }
    for (int i = 0; i < block * channels; ++i)
      power[i % channels] += out[i] * out[i];
  }
  tone_destroy(model);
  for (int channel = 0; channel < channels; ++channel)
    gain[channel] = 10 * log10(power[channel] / (block * blocks) / (0.1 * 0.1 / 2));
  printf("low tone %.1f dB, high tone %.1f dB\n", gain[0], gain[1]);
  return 0;
}
