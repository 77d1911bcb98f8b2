/* SPDX-License-Identifier: Apache-2.0 */
/* Classifies an image, and returns the attention of each head of the last block. */
#include "looker.h"
#include "exports.h"

enum { CLASSES = 10, HEADS = 4, PATCHES = 7 * 7 };

static looker_t *model;
static kiln_call_t call;
static float results[CLASSES + HEADS * PATCHES];

EXPORT(open_looker) int open_looker(const void *weights, size_t bytes) {
  if (!model && looker_create(NULL, &model, &last_error))
    return last_error.status;
  call.arena_bytes = LOOKER_LOOK_ARENA_BYTES(threads);
  call.executor = executor;
  call.error = &last_error;
  if (!call.arena && !(call.arena = take_memory(call.arena_bytes)))
    return KILN_OUT_OF_MEMORY;
  return looker_bind_weights_from_memory(model, weights, bytes, &last_error);
}

/* Takes 28 x 28 numbers from 0 to 1. Returns ten logits, and the attention of four heads to 7 x 7 patches; null on
   failure. */
EXPORT(look) const float *look(const float *picture) {
  return looker_look(model, &call, picture, results, results + CLASSES) ? NULL : results;
}
