// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Resuming a training from a file of save_training, and moving averages of the weights. */
#include "core/instance.h"
#include "core/sharding.h"
#include "weights/bind.h"
#include "weights/pack.h"

#include <stddef.h>
#include <string.h>

/* The training that is restored. */
typedef struct restored_t {
  char *arena;
  kiln_training_t *training;
} restored_t;

/* Finds the tensor of a copy of a trained weight or of a state, and checks that it has the same type. */
static kiln_status_t find(const kiln_weight_t *wanted, uint32_t copy, const kiln_tensors_t *table,
                          kiln_tensor_t **tensor, kiln_error_t *error) {
  kiln_name_t name;
  kiln_weight_name(wanted, copy, &name);
  *tensor = kiln_tensors_find(table, &name);
  const kiln_status_t status = kiln_check_weight(wanted, &name, *tensor, error);
  if (status || (*tensor)->dtype == wanted->dtype)
    return status;
  return kiln_error_set(error, KILN_WEIGHT_TYPE, "tensor \"%.*s\": wrong type; expected %s, got %s",
                        kiln_shown((*tensor)->name_length), (*tensor)->name, kiln_safetensors_dtype_text(wanted->dtype),
                        kiln_safetensors_dtype_text((*tensor)->dtype));
}

/* The destination of a copy of a tensor: a state or a weight. */
typedef struct place_t {
  kiln_model_t *model;
  uint32_t index, copy;
  uint64_t bytes; /* of one element */
  char *state;    /* null: a weight */
  const char *from;
} place_t;

static kiln_status_t put(const void *context, const kiln_span_t *span, kiln_error_t *error) {
  const place_t *place = context;
  const char *from = place->from + span->whole * place->bytes;
  if (!place->state)
    return kiln_write_elements(place->model, place->index, place->copy, span->own, span->count, from, error);
  memcpy(place->state + span->own * place->bytes, from, (size_t)(span->count * place->bytes));
  return KILN_OK;
}

/* Writes the model's part of a copy, if there is one, to its place in an arena or, for a weight, in the packed
 * weights. */
static kiln_status_t put_copy(kiln_model_t *model, uint32_t index, uint32_t copy, const kiln_tensor_t *tensor,
                              char *arena, kiln_error_t *error) {
  const kiln_descriptor_t *descriptor = model->descriptor;
  const kiln_weight_t *own = kiln_kept_tensor(descriptor, index);
  uint32_t first;
  const uint32_t copies = kiln_own_copies(model, own, &first);
  if (copy < first || copy - first >= copies)
    return KILN_OK;
  place_t place = {model, index, copy - first, kiln_safetensors_stored_bytes(own->dtype, 1), NULL, tensor->data};
  const kiln_span_t all = {0, 0, kiln_elements_except(own, own->rank)};
  if (index >= descriptor->weight_count)
    place.state = arena + kiln_state_place(model, &descriptor->states[index - descriptor->weight_count], place.copy);
  return descriptor->sharding ? descriptor->sharding->spread(model, index, put, &place, error)
                              : put(&place, &all, error);
}

/* Checks all tensors of a weight or, at indices after the weights, of a state; if is_written, writes them to their
 * places. */
static kiln_status_t take(kiln_model_t *model, uint32_t index, const kiln_tensors_t *table, bool is_written,
                          char *arena, kiln_error_t *error) {
  kiln_weight_t room;
  kiln_tensor_t *tensor;
  const kiln_weight_t *whole = kiln_whole_weight(model->descriptor, index, &room);
  kiln_status_t status = KILN_OK;
  for (uint32_t copy = 0; !status && copy < whole->copies; ++copy) {
    status = find(whole, copy, table, &tensor, error);
    if (!status && is_written)
      status = put_copy(model, index, copy, tensor, arena, error);
  }
  return status;
}

/* Checks that the table has all states; with `restored`, restores them. */
static kiln_status_t take_states(kiln_model_t *model, const kiln_tensors_t *table, const restored_t *restored,
                                 kiln_error_t *error) {
  const kiln_descriptor_t *descriptor = model->descriptor;
  char *arena = restored ? restored->arena : NULL;
  kiln_tensor_t *tensor;
  kiln_status_t status;
  for (uint32_t i = 0; i < descriptor->state_count; ++i)
    if ((status = take(model, descriptor->weight_count + i, table, restored != NULL, arena, error)))
      return status;
  for (int i = 0; i < KILN_TRAINING_NUMBERS; ++i) {
    if ((status = find(&kiln_training_numbers[i], 0, table, &tensor, error)))
      return status;
    if (restored)
      memcpy((char *)restored->training + (size_t)i * sizeof(int32_t), tensor->data, sizeof(int32_t));
  }
  return KILN_OK;
}

/* Whether there are frozen weights. These must be bound already: a training file contains only the others. */
static bool has_frozen(const kiln_model_t *model) {
  for (uint32_t i = 0; i < model->descriptor->weight_count; ++i)
    if (!kiln_weight_changes(model, i))
      return true;
  return false;
}

/* Checks that the table has all trained weights; if is_written, writes them to their places. */
static kiln_status_t take_weights(kiln_model_t *model, const kiln_tensors_t *table, bool is_written,
                                  kiln_error_t *error) {
  kiln_status_t status;
  for (uint32_t i = 0; i < model->descriptor->weight_count; ++i)
    if (kiln_weight_changes(model, i) && (status = take(model, i, table, is_written, NULL, error)))
      return status;
  return KILN_OK;
}

static kiln_status_t take_some_weights(kiln_model_t *model, const kiln_tensors_t *table, kiln_error_t *error) {
  kiln_status_t status;
  if (!model->packed)
    return kiln_error_set(error, KILN_WEIGHTS_NOT_BOUND,
                          "load_training: no weights; expected bound ones, since the file has none that are frozen");
  if ((status = take_weights(model, table, false, error)) || (status = kiln_check_used(model, table, error)))
    return status;
  return take_weights(model, table, true, error);
}

/* Whether a file has something that only save_training writes. */
static bool is_of_training(const kiln_tensors_t *table) {
  bool has_some = false;
  kiln_name_t name;
  for (int i = 0; i < KILN_TRAINING_NUMBERS; ++i) {
    kiln_weight_name(&kiln_training_numbers[i], 0, &name);
    has_some |= kiln_tensors_find(table, &name) != NULL;
  }
  return has_some;
}

static kiln_status_t take_training(kiln_model_t *model, kiln_tensors_t *table, const void *context,
                                   kiln_error_t *error) {
  if (!is_of_training(table))
    return kiln_error_set(error, KILN_WEIGHT_MISSING,
                          "load_training: a file without \"%s\"; expected one of save_training, got weights, which "
                          "bind_weights reads",
                          kiln_training_numbers[0].name);
  kiln_status_t status = take_states(model, table, NULL, error);
  if (status || (status = kiln_source_check(table, error)) ||
      (status = has_frozen(model) ? take_some_weights(model, table, error) : kiln_bind_tensors(model, table, error)))
    return status;
  const restored_t *restored = context;
  kiln_mark_kept(model, restored->arena, KILN_KEEPS_STATES | KILN_KEEPS_OPTIMIZER_STATE);
  return take_states(model, table, restored, error);
}

kiln_status_t kiln_load_training(kiln_model_t *model, void *arena, kiln_training_t *training, const char *path,
                                 kiln_error_t *error) {
  const restored_t restored = {arena, training};
  if (!model || !arena || !training || !path)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "load_training: null given; expected %s",
                          !model      ? "a model"
                          : !arena    ? "an arena"
                          : !training ? "a place for step and seed"
                                      : "a path");
  return kiln_checkpoint_take(model, path, take_training, &restored, error);
}

/* Returns the weight whose moving average a state is; null: it is another state. */
static const kiln_weight_t *averaged_weight(const kiln_descriptor_t *descriptor, const kiln_state_t *state) {
  static const char beginning[] = "average:";
  const size_t length = sizeof beginning - 1;
  for (uint32_t i = 0; strncmp(state->tensor.name, beginning, length) == 0 && i < descriptor->weight_count; ++i)
    if (strcmp(descriptor->weights[i].name, state->tensor.name + length) == 0)
      return &descriptor->weights[i];
  return NULL;
}

static void swap(char *a, char *b, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; ++i) {
    const char before = a[i];
    a[i] = b[i];
    b[i] = before;
  }
}

kiln_status_t kiln_swap_average(kiln_model_t *model, void *arena, kiln_error_t *error) {
  if (!model || !arena)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "swap_average: null given; expected %s",
                          model ? "an arena" : "a model");
  if (!model->packed)
    return kiln_error_set(error, KILN_WEIGHTS_NOT_BOUND, "swap_average: no weights; expected bound ones");
  kiln_status_t status = kiln_refuse_parts(model, "swap_average", error);
  if (status || (status = kiln_require_kept(model, arena, KILN_KEEPS_OPTIMIZER_STATE, "swap_average", error)))
    return status;
  const kiln_descriptor_t *descriptor = model->descriptor;
  for (uint64_t i = 0; i < descriptor->state_count; ++i) {
    const kiln_state_t *state = &descriptor->states[i];
    const kiln_weight_t *weight = averaged_weight(descriptor, state);
    uint32_t first;
    const uint32_t copies = kiln_own_copies(model, &state->tensor, &first);
    if (!weight || copies == 0)
      continue;
    /* Trained weights are stored dense, as f32. */
    const kiln_placement_t *placement = &model->role.placements[weight - descriptor->weights];
    char *packed = model->packed + placement->offset + placement->shift * sizeof(float);
    for (uint32_t copy = 0; copy < copies; ++copy)
      swap(packed + copy * placement->stride, (char *)arena + kiln_state_place(model, state, copy),
           kiln_weight_bytes(&state->tensor));
  }
  return kiln_error_clear(error);
}
