// SPDX-License-Identifier: Apache-2.0
/* train FILE: trains the net and writes its weights. */
#include "points.h"
#include "ring_train.h"

#include <stdio.h>

static kiln_error_t error;

static int failed(kiln_status_t status) {
  if (status)
    fprintf(stderr, "train: %s\n", error.message);
  return status != KILN_OK;
}

int main(int argc, char **argv) {
  ring_train_t *model = NULL;
  void *arena = NULL;
  const size_t bytes = RING_TRAIN_TRAIN_ARENA_BYTES(1);
  if (argc != 2 || failed(ring_train_create(NULL, &model, &error)) ||
      failed(ring_train_initialise_weights(model, 1, &error)) ||
      failed(ring_train_allocate_memory(model, bytes, &arena, &error)) ||
      failed(ring_train_begin_training(model, arena, &error)))
    return 1;
  const kiln_call_t call = {.arena = arena, .arena_bytes = bytes, .error = &error};
  float points[2 * POINTS], loss = 0, first = 0;
  int32_t classes[POINTS];
  for (int32_t step = 1; step <= 1500; ++step) {
    const float rate = 3e-3f;
    draw_points((uint32_t)step, points, classes);
    if (failed(ring_train_train(model, &call, POINTS, points, classes, &rate, &step, &loss)))
      return 1;
    first = step == 1 ? loss : first;
  }
  printf("loss %.3f, then %.3f\n", first, loss);
  if (failed(ring_train_save_weights(model, argv[1], &error)))
    return 1;
  ring_train_release_memory(model, arena);
  ring_train_destroy(model);
  return 0;
}
