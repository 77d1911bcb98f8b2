// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* The data that an arena keeps from call to call: initially zeros, or initialised by begin_session and
 * begin_training. States, and after them optimiser state, each start with KILN_MARK_BYTES, which the first call
 * marks, so that arbitrary other data can be recognised. On a GPU marks are not read, since that would wait for the
 * device. */
#include "core/instance.h"

#include <string.h>

typedef struct region_t {
  char *first;
  uint64_t bytes; /* 0: there is none */
} region_t;

/* Returns the states of an entry that keeps any; find_optimizer_state returns its optimiser state. */
static region_t find_states(const kiln_model_t *model, const void *arena, uint32_t keeps) {
  return (region_t){(char *)arena, keeps & KILN_KEEPS_STATES ? model->descriptor->state_bytes : 0};
}

static region_t find_optimizer_state(const kiln_model_t *model, const void *arena, uint32_t keeps) {
  const uint64_t states = model->descriptor->state_bytes;
  return (region_t){(char *)arena + states,
                    keeps & KILN_KEEPS_OPTIMIZER_STATE ? model->descriptor->training_bytes - states : 0};
}

static bool is_zero(region_t region) {
  for (uint64_t at = 0; at < region.bytes; at += sizeof(uint64_t)) {
    uint64_t word;
    memcpy(&word, region.first + at, sizeof word);
    if (word != 0)
      return false;
  }
  return true;
}

static bool is_begun(const kiln_model_t *model, region_t region) {
  uint64_t mark;
  if (region.bytes == 0)
    return true;
  memcpy(&mark, region.first, sizeof mark);
  return mark == model->descriptor->mark || is_zero(region);
}

kiln_status_t kiln_require_kept(const kiln_model_t *model, const void *arena, uint32_t keeps, const char *caller,
                                kiln_error_t *error) {
  const bool has_states = !arena || is_begun(model, find_states(model, arena, keeps));
  if (has_states && (!arena || is_begun(model, find_optimizer_state(model, arena, keeps))))
    return KILN_OK;
  return kiln_error_set(
      error, KILN_SESSION_NOT_BEGUN,
      "%s of model \"%.*s\": arena not begun; expected %s of zeros or earlier calls at its start; %s makes zeros",
      caller, KILN_NAME_SHOWN, model->descriptor->name, has_states ? "training states" : "states",
      keeps & KILN_KEEPS_OPTIMIZER_STATE ? "begin_training" : "begin_session");
}

static void mark(const kiln_model_t *model, region_t region) {
  if (region.bytes > 0)
    memcpy(region.first, &model->descriptor->mark, sizeof model->descriptor->mark);
}

void kiln_mark_kept(const kiln_model_t *model, void *arena, uint32_t keeps) {
  mark(model, find_states(model, arena, keeps));
  mark(model, find_optimizer_state(model, arena, keeps));
}

kiln_status_t kiln_check_kept(const kiln_model_t *model, void *arena, uint32_t keeps, const char *caller,
                              kiln_error_t *error) {
  const kiln_status_t status = kiln_require_kept(model, arena, keeps, caller, error);
  if (!status && arena)
    kiln_mark_kept(model, arena, keeps);
  return status;
}

static kiln_status_t begin(const kiln_model_t *model, void *arena, bool is_training, kiln_error_t *error) {
  const char *function = is_training ? "begin_training" : "begin_session";
  if (!model || !arena)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "%s: null given; expected %s", function,
                          model ? "an arena" : "a model");
  const kiln_descriptor_t *descriptor = model->descriptor;
  const uint64_t bytes = is_training ? descriptor->training_bytes : descriptor->state_bytes;
  const kiln_status_t status = kiln_zero_memory(model, arena, (size_t)bytes, error);
  if (!status && bytes > 0 && !model->variant->backend)
    kiln_mark_kept(model, arena, KILN_KEEPS_STATES | (is_training ? KILN_KEEPS_OPTIMIZER_STATE : 0));
  return status;
}

kiln_status_t kiln_begin_session(const kiln_model_t *model, void *arena, kiln_error_t *error) {
  return begin(model, arena, false, error);
}

kiln_status_t kiln_begin_training(const kiln_model_t *model, void *arena, kiln_error_t *error) {
  return begin(model, arena, true, error);
}
