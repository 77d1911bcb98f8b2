// SPDX-License-Identifier: Apache-2.0
/* use FILE: prints the accuracy of the trained net on new points; fails below nine in ten. */
#include "points.h"
#include "ring.h"

#include <stdio.h>

int main(int argc, char **argv) {
  static _Alignas(KILN_ARENA_ALIGNMENT) char arena[RING_FORWARD_ARENA_BYTES(1)];
  kiln_error_t error;
  ring_t *model = NULL;
  if (argc != 2 || ring_create(NULL, &model, &error) || ring_bind_weights(model, argv[1], &error)) {
    fprintf(stderr, "use: %s\n", error.message);
    return 1;
  }
  const kiln_call_t call = {.arena = arena, .arena_bytes = sizeof arena, .error = &error};
  float points[2 * POINTS], logits[2 * POINTS];
  int32_t classes[POINTS];
  int right = 0, all = 0;
  for (uint32_t seed = 100000; seed < 100020; ++seed) {
    draw_points(seed, points, classes);
    if (ring_forward(model, &call, POINTS, points, logits)) {
      fprintf(stderr, "use: %s\n", error.message);
      return 1;
    }
    for (int i = 0; i < POINTS; ++i, ++all)
      right += (logits[2 * i + 1] > logits[2 * i]) == classes[i];
  }
  printf("%d of %d points right, schedules %s\n", right, all, RING_TUNING_DIGEST);
  ring_destroy(model);
  return right * 10 >= all * 9 ? 0 : 1;
}
