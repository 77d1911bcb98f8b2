// SPDX-License-Identifier: Apache-2.0
//
// Plays a tone through the amplifier and prints its loudness: program amp.safetensors
#include "amp.h"

#include <math.h>
#include <stdio.h>

int main(int count, char **arguments) {
  static _Alignas(KILN_ARENA_ALIGNMENT) char arena[AMP_PLAY_ARENA_BYTES(1)]; // zeros: the initial state
  kiln_error_t error = {KILN_OK, ""};
  const kiln_call_t call = {.arena = arena, .arena_bytes = sizeof arena, .error = &error};
  float clean[AMP_PLAY_SAMPLES_MAX], driven[AMP_PLAY_SAMPLES_MAX];
  double squares = 0;
  amp_t *model = NULL;
  kiln_status_t status = amp_create(NULL, &model, &error);
  if (status == KILN_OK)
    status = amp_bind_weights(model, count > 1 ? arguments[1] : "amp.safetensors", &error);
  for (int sample = 0; status == KILN_OK && sample < 1024; sample += AMP_PLAY_SAMPLES_MAX) {
    for (int i = 0; i < AMP_PLAY_SAMPLES_MAX; ++i)
      clean[i] = (float)((sample + i) % 100) / 100 - 0.5f;
    status = amp_play(model, &call, AMP_PLAY_SAMPLES_MAX, clean, driven);
    for (int i = 0; i < AMP_PLAY_SAMPLES_MAX; ++i)
      squares += driven[i] * driven[i];
  }
  amp_destroy(model);
  if (status != KILN_OK) {
    fprintf(stderr, "%s: %s\n", error.message, amp_status_text(status));
    return 1;
  }
  printf("loudness %.5f\n", sqrt(squares / 1024));
  return 0;
}
