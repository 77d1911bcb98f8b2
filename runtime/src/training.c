// SPDX-License-Identifier: Apache-2.0
/* Going on with a training: what save_training wrote, and moving averages of the weights. */
#include "internal.h"

#include <stddef.h>
#include <string.h>

/* Where a training goes on. */
typedef struct restored_t {
  char *arena;
  kiln_training_t *training;
} restored_t;

/* A tensor of the arena, or of weights that change, of the type that it has there. */
static kiln_status_t find_state(const kiln_weight_t *state, uint32_t copy, const kiln_tensors_t *table,
                                kiln_tensor_t **tensor, kiln_error_t *error) {
  kiln_name_t name;
  kiln_weight_name(state, copy, &name);
  *tensor = kiln_tensors_find(table, &name);
  const kiln_status_t status = kiln_check_weight(state, &name, *tensor, error);
  if (status || (*tensor)->dtype == state->dtype)
    return status;
  return kiln_error_set(error, KILN_WEIGHT_TYPE, "tensor \"%.*s\" requires type %s, got %s",
                        kiln_shown((*tensor)->name_length), (*tensor)->name, kiln_safetensors_dtype_text(state->dtype),
                        kiln_safetensors_dtype_text((*tensor)->dtype));
}

/* Checks that the table has it all; with an arena it takes it from there. */
static kiln_status_t take_states(const kiln_descriptor_t *descriptor, const kiln_tensors_t *table,
                                 const restored_t *restored, kiln_error_t *error) {
  kiln_tensor_t *tensor;
  kiln_status_t status;
  for (uint64_t i = 0; i < descriptor->state_count; ++i) {
    const kiln_state_t *state = &descriptor->states[i];
    for (uint32_t copy = 0; copy < state->tensor.copies; ++copy) {
      if ((status = find_state(&state->tensor, copy, table, &tensor, error)))
        return status;
      if (restored)
        memcpy(restored->arena + state->offset + copy * state->stride, tensor->data, kiln_weight_bytes(&state->tensor));
    }
  }
  for (int i = 0; i < KILN_TRAINING_NUMBERS; ++i) {
    if ((status = find_state(&kiln_training_numbers[i], 0, table, &tensor, error)))
      return status;
    if (restored)
      memcpy((char *)restored->training + (size_t)i * sizeof(int32_t), tensor->data, sizeof(int32_t));
  }
  return KILN_OK;
}

/* Weights that the training does not change are those that are bound: a file has the others alone. */
static bool has_frozen(const kiln_model_t *model) {
  for (uint32_t i = 0; i < model->descriptor->weight_count; ++i)
    if (!kiln_weight_changes(model, i))
      return true;
  return false;
}

/* Checks that the table has all weights that change; if they are to be written it puts them where they lie. */
static kiln_status_t take_weights(kiln_model_t *model, const kiln_tensors_t *table, bool is_written,
                                  kiln_error_t *error) {
  kiln_tensor_t *tensor;
  kiln_status_t status;
  for (uint32_t i = 0; i < model->descriptor->weight_count; ++i) {
    const kiln_weight_t *weight = &model->descriptor->weights[i];
    for (uint32_t copy = 0; kiln_weight_changes(model, i) && copy < weight->copies; ++copy)
      if ((status = find_state(weight, copy, table, &tensor, error)) ||
          (is_written && (status = kiln_write_copy(model, i, copy, tensor->data, error))))
        return status;
  }
  return KILN_OK;
}

static kiln_status_t take_some_weights(kiln_model_t *model, const kiln_tensors_t *table, kiln_error_t *error) {
  kiln_status_t status;
  if (!model->packed)
    return kiln_error_set(error, KILN_WEIGHTS_NOT_BOUND,
                          "load_training requires bound weights, since the file has none that are frozen; got none");
  if ((status = take_weights(model, table, false, error)) || (status = kiln_check_used(model, table, error)))
    return status;
  return take_weights(model, table, true, error);
}

static kiln_status_t take_training(kiln_model_t *model, kiln_tensors_t *table, const void *context,
                                   kiln_error_t *error) {
  kiln_status_t status = take_states(model->descriptor, table, NULL, error);
  if (status ||
      (status = has_frozen(model) ? take_some_weights(model, table, error) : kiln_bind_tensors(model, table, error)))
    return status;
  return take_states(model->descriptor, table, context, error);
}

kiln_status_t kiln_load_training(kiln_model_t *model, void *arena, kiln_training_t *training, const char *path,
                                 kiln_error_t *error) {
  const restored_t restored = {arena, training};
  if (!model || !arena || !training || !path)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "load_training requires %s, got null",
                          !model      ? "a model"
                          : !arena    ? "an arena"
                          : !training ? "a place for step and seed"
                                      : "a path");
  const kiln_status_t status = kiln_refuse_slices(model, "load_training", error);
  return status ? status : kiln_checkpoint_take(model, path, take_training, &restored, error);
}

/* The weight whose average a state is; null: it is another one. */
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
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "swap_average requires %s, got null",
                          model ? "an arena" : "a model");
  if (!model->packed)
    return kiln_error_set(error, KILN_WEIGHTS_NOT_BOUND, "swap_average requires bound weights, got none");
  const kiln_descriptor_t *descriptor = model->descriptor;
  for (uint64_t i = 0; i < descriptor->state_count; ++i) {
    const kiln_state_t *state = &descriptor->states[i];
    const kiln_weight_t *weight = averaged_weight(descriptor, state);
    if (!weight)
      continue;
    /* What is trained lies dense, and as f32. */
    const kiln_placement_t *placement = &model->variant->placements[weight - descriptor->weights];
    char *packed = model->packed + placement->offset + placement->shift * sizeof(float);
    for (uint32_t copy = 0; copy < weight->copies; ++copy)
      swap(packed + copy * placement->stride, (char *)arena + state->offset + copy * state->stride,
           kiln_weight_bytes(&state->tensor));
  }
  return kiln_error_clear(error);
}
