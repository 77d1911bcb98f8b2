/* SPDX-License-Identifier: Apache-2.0 */
/* Predicts the next character of a text of at most 256 characters. */
#include "exports.h"

enum { CHARACTERS = 63 };

static writer_t *model;
static kiln_call_t call;
static float logits[CHARACTERS];

/* Binds a safetensors file, which may be freed afterwards. Returns 0 on success. */
EXPORT(open_writer) int open_writer(const void *weights, size_t bytes) {
  const size_t prefill = WRITER_PREFILL_ARENA_BYTES(threads), decode = WRITER_DECODE_ARENA_BYTES(threads);
  if (!model && writer_create(NULL, &model, &last_error))
    return last_error.status;
  call.arena_bytes = prefill > decode ? prefill : decode;
  call.executor = executor;
  call.error = &last_error;
  if (!call.arena && !(call.arena = take_memory(call.arena_bytes)))
    return KILN_OUT_OF_MEMORY;
  return writer_bind_weights_from_memory(model, weights, bytes, &last_error);
}

/* Returns the logits of the character after these `count`, of which the last call had the first `known`; null on
 * failure. */
EXPORT(next) const float *next(const int32_t *tokens, int32_t count, int32_t known) {
  const kiln_status_t status = count == known + 1
                                   ? writer_decode(model, &call, count, tokens + known, logits)
                                   : writer_prefill(model, &call, count - known, count, tokens + known, logits);
  return status ? NULL : logits;
}
