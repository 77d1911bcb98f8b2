// SPDX-License-Identifier: Apache-2.0
/* Writes the bound weights as a safetensors file, in the order of the weight table and of the copies: what
 * bind_weights reads, and other programs do. If a training is to go on from there, those that it changes and its
 * states. */
#include "internal.h"

#include <string.h>

/* What is read from the packed copy at a time; of a weight with longer rows, one of them. */
enum { PIECE_BYTES = 1 << 20 };
enum { HEADER_ALIGNMENT = 8 };

/* Text, or with a null output its length alone. */
typedef struct header_t {
  const kiln_output_t *output;
  uint64_t bytes;
  kiln_status_t status;
  kiln_error_t *error;
} header_t;

static void put(header_t *header, const char *text, size_t length) {
  header->bytes += length;
  if (header->output && !header->status)
    header->status = kiln_file_write(header->output, text, length, header->error);
}

/* What a file has. */
typedef struct contents_t {
  const kiln_model_t *model;
  const char *arena; /* of a training; null: the weights alone */
  const kiln_training_t *training;
} contents_t;

/* A tensor that is packed twice is written once, and for a training only what that changes. */
static bool is_written(const contents_t *contents, uint32_t index) {
  const kiln_descriptor_t *descriptor = contents->model->descriptor;
  for (uint32_t i = 0; i < index; ++i)
    if (strcmp(descriptor->weights[i].name, descriptor->weights[index].name) == 0)
      return false;
  return !contents->arena || kiln_weight_changes(contents->model, index);
}

static void put_tensor(header_t *header, const kiln_weight_t *weight, const kiln_name_t *name, uint64_t begin) {
  const unsigned long long first = begin, end = begin + kiln_weight_bytes(weight);
  char text[KILN_SHAPE_TEXT_BYTES + 96], shape[KILN_SHAPE_TEXT_BYTES];
  put(header, begin ? ",\"" : "\"", begin ? 2 : 1);
  for (int i = 0; i < 3; ++i)
    put(header, name->parts[i], name->lengths[i]);
  const size_t length = kiln_text_print(
      text, sizeof text, "\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%llu,%llu]}",
      kiln_safetensors_dtype_text(weight->dtype), kiln_shape_text(shape, weight->rank, weight->shape), first, end);
  put(header, text, length);
}

/* All copies of a weight or a state. */
static void put_copies(header_t *header, const kiln_weight_t *weight, uint64_t *begin) {
  kiln_name_t name;
  for (uint32_t copy = 0; copy < weight->copies; ++copy) {
    kiln_weight_name(weight, copy, &name);
    put_tensor(header, weight, &name, *begin);
    *begin += kiln_weight_bytes(weight);
  }
}

static void put_header(const contents_t *contents, header_t *header) {
  const kiln_descriptor_t *descriptor = contents->model->descriptor;
  uint64_t begin = 0;
  put(header, "{", 1);
  for (uint32_t i = 0; i < descriptor->weight_count; ++i)
    if (is_written(contents, i))
      put_copies(header, &descriptor->weights[i], &begin);
  for (uint64_t i = 0; contents->arena && i < descriptor->state_count; ++i)
    put_copies(header, &descriptor->states[i].tensor, &begin);
  for (int i = 0; contents->arena && i < KILN_TRAINING_NUMBERS; ++i)
    put_copies(header, &kiln_training_numbers[i], &begin);
  put(header, "}", 1);
  while (header->bytes % HEADER_ALIGNMENT != 0)
    put(header, " ", 1);
}

/* Some rows at a time. */
static kiln_status_t write_copy(const kiln_model_t *model, const kiln_weight_t *weight, const kiln_name_t *name,
                                const kiln_output_t *output, kiln_error_t *error) {
  const uint64_t rows = weight->rank ? (uint64_t)weight->shape[0] : 1, row_bytes = kiln_weight_bytes(weight) / rows;
  const uint64_t together = row_bytes > PIECE_BYTES ? 1 : PIECE_BYTES / row_bytes;
  const size_t length = name->lengths[0] + name->lengths[1] + name->lengths[2];
  kiln_status_t status;
  void *memory;
  if ((status = kiln_memory_allocate(&model->allocator, together * row_bytes + length + 1, "rows of a weight", &memory,
                                     error)))
    return status;
  char *full = (char *)memory + together * row_bytes, *end = full;
  for (int i = 0; i < 3; end += name->lengths[i++])
    memcpy(end, name->parts[i], name->lengths[i]);
  *end = '\0';
  for (uint64_t row = 0, count; !status && row < rows; row += count) {
    count = rows - row < together ? rows - row : together;
    if (!(status = kiln_read_weight(model, full, row, count, memory, error)))
      status = kiln_file_write(output, memory, count * row_bytes, error);
  }
  model->allocator.release(model->allocator.self, memory);
  return status;
}

static kiln_status_t write_weights(const contents_t *contents, const kiln_output_t *output, kiln_error_t *error) {
  const kiln_descriptor_t *descriptor = contents->model->descriptor;
  kiln_status_t status = KILN_OK;
  kiln_name_t name;
  for (uint32_t i = 0; i < descriptor->weight_count; ++i)
    for (uint32_t copy = 0; !status && is_written(contents, i) && copy < descriptor->weights[i].copies; ++copy) {
      kiln_weight_name(&descriptor->weights[i], copy, &name);
      status = write_copy(contents->model, &descriptor->weights[i], &name, output, error);
    }
  return status;
}

static kiln_status_t write_training(const contents_t *contents, const kiln_output_t *output, kiln_error_t *error) {
  const kiln_descriptor_t *descriptor = contents->model->descriptor;
  kiln_status_t status = KILN_OK;
  for (uint64_t i = 0; i < descriptor->state_count; ++i) {
    const kiln_state_t *state = &descriptor->states[i];
    for (uint32_t copy = 0; !status && copy < state->tensor.copies; ++copy)
      status = kiln_file_write(output, contents->arena + state->offset + copy * state->stride,
                               kiln_weight_bytes(&state->tensor), error);
  }
  return status ? status : kiln_file_write(output, contents->training, sizeof *contents->training, error);
}

static kiln_status_t write_contents(const void *context, const kiln_output_t *output, kiln_error_t *error) {
  const contents_t *contents = context;
  header_t counted = {NULL, 0, KILN_OK, NULL}, written = {output, 0, KILN_OK, error};
  put_header(contents, &counted);
  kiln_status_t status = kiln_file_write(output, &counted.bytes, sizeof counted.bytes, error);
  if (status)
    return status;
  put_header(contents, &written);
  if ((status = written.status) || (status = write_weights(contents, output, error)) || !contents->arena)
    return status;
  return write_training(contents, output, error);
}

static kiln_status_t save(const contents_t *contents, const char *path, const char *function, kiln_error_t *error) {
  if (!contents->model || !path)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "%s requires %s, got null", function,
                          contents->model ? "a path" : "a model");
  if (!contents->model->packed)
    return kiln_error_set(error, KILN_WEIGHTS_NOT_BOUND, "%s requires bound weights, got none", function);
  const kiln_status_t status = kiln_refuse_slices(contents->model, function, error);
  return status ? status : kiln_file_replace(path, write_contents, contents, error);
}

kiln_status_t kiln_save_weights(const kiln_model_t *model, const char *path, kiln_error_t *error) {
  const contents_t contents = {model, NULL, NULL};
  return save(&contents, path, "save_weights", error);
}

kiln_status_t kiln_save_training(const kiln_model_t *model, const void *arena, const kiln_training_t *training,
                                 const char *path, kiln_error_t *error) {
  const contents_t contents = {model, arena, training};
  if (!arena || !training)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "save_training requires %s, got null",
                          arena ? "a step and a seed" : "an arena");
  return save(&contents, path, "save_training", error);
}
