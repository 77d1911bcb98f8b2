// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* What an arena keeps from call to call: zeros at first, or what begin_session and begin_training make of it. The first
 * call marks it, so that anything else is told from states. On a GPU no mark is read, which would wait for the device.
 */
#include "internal.h"

#include <string.h>

/* The marks of an arena. Entries that do not train take the second one away: they use what is behind the states. */
typedef struct marks_t {
  uint64_t states, moments;
} marks_t;

static bool is_zero(const char *memory, uint64_t bytes) {
  for (uint64_t at = 0; at < bytes; at += sizeof(uint64_t)) {
    uint64_t word;
    memcpy(&word, memory + at, sizeof word);
    if (word != 0)
      return false;
  }
  return true;
}

static kiln_status_t refuse(const kiln_model_t *model, const char *caller, bool is_training, kiln_error_t *error) {
  return kiln_error_set(error, KILN_SESSION_NOT_BEGUN,
                        "%s of model \"%.*s\" requires %s of zeros or of earlier calls at the beginning of the arena, "
                        "got other bytes; %s makes zeros",
                        caller, KILN_NAME_SHOWN, model->descriptor->name,
                        is_training ? "what a training keeps" : "states",
                        is_training ? "begin_training" : "begin_session");
}

/* The marks as they are after an entry. */
static kiln_status_t examine(const kiln_model_t *model, const char *arena, uint32_t keeps, const char *caller,
                             marks_t *marks, kiln_error_t *error) {
  const kiln_descriptor_t *descriptor = model->descriptor;
  const bool trains = keeps & KILN_KEEPS_MOMENTS;
  const uint64_t states = descriptor->state_bytes > 0 ? descriptor->state_bytes : KILN_MARK_BYTES;
  memcpy(marks, arena, sizeof *marks);
  if (keeps && marks->states != descriptor->mark) {
    if (!is_zero(arena, states))
      return refuse(model, caller, trains, error);
    marks->states = descriptor->mark;
  }
  if (trains && marks->moments != descriptor->mark) {
    if (marks->moments != 0 || !is_zero(arena + states, descriptor->training_bytes - states))
      return refuse(model, caller, true, error);
    marks->moments = descriptor->mark;
  }
  if (!trains && descriptor->training_bytes > descriptor->state_bytes)
    marks->moments = 0;
  return KILN_OK;
}

/* Whether an arena for such an entry begins with marks. */
static bool has_marks(const kiln_model_t *model, const void *arena, uint32_t keeps) {
  return arena && model->descriptor->mark && (model->descriptor->state_bytes > 0 || keeps & KILN_KEEPS_MOMENTS);
}

kiln_status_t kiln_require_kept(const kiln_model_t *model, const void *arena, uint32_t keeps, const char *caller,
                                kiln_error_t *error) {
  marks_t marks;
  return has_marks(model, arena, keeps) ? examine(model, arena, keeps, caller, &marks, error) : KILN_OK;
}

kiln_status_t kiln_check_kept(const kiln_model_t *model, void *arena, uint32_t keeps, const char *caller,
                              kiln_error_t *error) {
  if (!has_marks(model, arena, keeps))
    return KILN_OK;
  marks_t marks;
  const kiln_status_t status = examine(model, arena, keeps, caller, &marks, error);
  if (!status)
    memcpy(arena, &marks, sizeof marks);
  return status;
}

void kiln_mark_kept(const kiln_model_t *model, void *arena, bool has_moments) {
  const uint64_t mark = model->descriptor->mark;
  if (!mark)
    return;
  const marks_t marks = {mark, has_moments ? mark : 0};
  memset(arena, 0, KILN_MARK_BYTES);
  memcpy(arena, &marks, sizeof marks);
}
