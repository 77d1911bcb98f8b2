// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Computes derived weights, such as the scales of batch norms, as soon as the weights are bound: calls a body that
 * belongs to no entry and writes packed weights. */
#include "core/instance.h"
#include "core/run.h"
#include "weights/bind.h"

kiln_status_t kiln_derive_prepare(const kiln_model_t *model, void **arena, kiln_error_t *error) {
  *arena = NULL;
  if (!model->variant->derives)
    return KILN_OK;
  const kiln_body_t *body = &model->role.bodies[model->descriptor->entry_count]; /* after those of the entries */
  return kiln_allocate_memory(model, (size_t)kiln_body_arena_bytes(body, 1), arena, error);
}

kiln_status_t kiln_derive(kiln_model_t *model, void *arena, kiln_status_t status, kiln_error_t *error) {
  if (!arena)
    return status;
  if (!status) {
    const kiln_call_t call = {.arena = arena, .arena_bytes = SIZE_MAX, .error = error};
    status = kiln_run_checked(model, &call, model->descriptor->entry_count, &(kiln_extents_t){0}, NULL);
    if (status && !model->variant->backend) {
      kiln_packed_release(model, model->packed, model->packed_kind);
      model->packed = NULL;
    }
  }
  kiln_release_memory(model, arena);
  return status;
}
