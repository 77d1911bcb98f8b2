/* SPDX-License-Identifier: Apache-2.0 */
/* A picture's class, and where each head of the last block looks. */
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

/* Of 28 x 28 numbers from 0 to 1: ten logits, and what each of four heads takes of 7 x 7 patches; null: it failed. */
EXPORT(look) const float *look(const float *picture) {
  return looker_look(model, &call, picture, results, results + CLASSES) ? NULL : results;
}
