// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Writes the bound weights as a safetensors file, in the order of the weight table and of the copies, which
 * bind_weights and other programs read. For a training to continue, writes the weights that it updates and its
 * states. */
#include "core/instance.h"
#include "core/sharding.h"
#include "weights/bind.h"
#include "weights/pack.h"

#include <string.h>

/* The size of a piece that is read. */
enum { PIECE_BYTES = 1 << 20 };
enum { HEADER_ALIGNMENT = 8 };

/* The header's text, or with a null output only its length. */
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

bool kiln_contents_has(const kiln_contents_t *contents, uint32_t index) {
  const kiln_descriptor_t *descriptor = contents->model->descriptor;
  if (index >= descriptor->weight_count)
    return contents->arena != NULL;
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

/* Writes copies of a weight or a state. */
static void put_copies(header_t *header, const kiln_weight_t *weight, uint32_t copies, uint64_t *begin) {
  kiln_name_t name;
  for (uint32_t copy = 0; copy < copies; ++copy) {
    kiln_weight_name(weight, copy, &name);
    put_tensor(header, weight, &name, *begin);
    *begin += kiln_weight_bytes(weight);
  }
}

static void put_header(const kiln_contents_t *contents, header_t *header) {
  const kiln_descriptor_t *descriptor = contents->model->descriptor;
  const kiln_weight_t *tensor;
  kiln_weight_t room;
  uint64_t begin = 0;
  put(header, "{", 1);
  for (uint32_t i = 0; i < descriptor->weight_count + descriptor->state_count; ++i)
    if (kiln_contents_has(contents, i)) {
      tensor = kiln_whole_weight(descriptor, i, &room);
      put_copies(header, tensor, tensor->copies, &begin);
    }
  for (int i = 0; contents->arena && i < KILN_TRAINING_NUMBERS; ++i)
    put_copies(header, &kiln_training_numbers[i], 1, &begin);
  put(header, "}", 1);
  while (header->bytes % HEADER_ALIGNMENT != 0)
    put(header, " ", 1);
}

kiln_status_t kiln_contents_begin(const kiln_contents_t *contents, const kiln_output_t *output, kiln_error_t *error) {
  header_t counted = {NULL, 0, KILN_OK, NULL}, written = {output, 0, KILN_OK, error};
  put_header(contents, &counted);
  const kiln_status_t status = kiln_file_write(output, &counted.bytes, sizeof counted.bytes, error);
  if (status)
    return status;
  put_header(contents, &written);
  return written.status;
}

kiln_status_t kiln_contents_read(const kiln_contents_t *contents, uint32_t index, uint32_t copy, uint64_t first,
                                 uint64_t count, void *values, kiln_error_t *error) {
  const kiln_descriptor_t *descriptor = contents->model->descriptor;
  if (index < descriptor->weight_count)
    return kiln_read_elements(contents->model, index, copy, first, count, values, error);
  const kiln_state_t *state = &descriptor->states[index - descriptor->weight_count];
  const uint64_t bytes = kiln_safetensors_stored_bytes(state->tensor.dtype, 1);
  memcpy(values, contents->arena + kiln_state_place(contents->model, state, copy) + first * bytes,
         (size_t)(count * bytes));
  return KILN_OK;
}

/* Writes a copy of a tensor, one piece at a time. */
static kiln_status_t write_copy(const kiln_contents_t *contents, uint32_t index, uint32_t copy, char *piece,
                                const kiln_output_t *output, kiln_error_t *error) {
  const kiln_weight_t *tensor = kiln_kept_tensor(contents->model->descriptor, index);
  const uint64_t bytes = kiln_safetensors_stored_bytes(tensor->dtype, 1), together = PIECE_BYTES / bytes;
  uint64_t left = kiln_elements_except(tensor, tensor->rank);
  kiln_status_t status = KILN_OK;
  for (uint64_t first = 0, count; !status && left > 0; first += count, left -= count) {
    count = left < together ? left : together;
    if (!(status = kiln_contents_read(contents, index, copy, first, count, piece, error)))
      status = kiln_file_write(output, piece, count * bytes, error);
  }
  return status;
}

static kiln_status_t write_contents(const void *context, const kiln_output_t *output, kiln_error_t *error) {
  const kiln_contents_t *contents = context;
  const kiln_model_t *model = contents->model;
  const uint32_t count = model->descriptor->weight_count + (uint32_t)model->descriptor->state_count;
  void *piece;
  kiln_status_t status;
  if ((status = kiln_memory_allocate(&model->allocator, PIECE_BYTES, "a piece of a weight", &piece, error)))
    return status;
  status = kiln_contents_begin(contents, output, error);
  for (uint32_t i = 0; i < count; ++i)
    for (uint32_t copy = 0;
         !status && kiln_contents_has(contents, i) && copy < kiln_kept_tensor(model->descriptor, i)->copies; ++copy)
      status = write_copy(contents, i, copy, piece, output, error);
  model->allocator.release(model->allocator.self, piece);
  return status ? status : kiln_contents_end(contents, output, error);
}

kiln_status_t kiln_contents_end(const kiln_contents_t *contents, const kiln_output_t *output, kiln_error_t *error) {
  return contents->arena ? kiln_file_write(output, contents->training, sizeof *contents->training, error) : KILN_OK;
}

static kiln_status_t save(const kiln_contents_t *contents, const char *path, const char *function,
                          kiln_error_t *error) {
  if (!contents->model || !path)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "%s: null given; expected %s", function,
                          contents->model ? "a path" : "a model");
  if (!contents->model->packed)
    return kiln_error_set(error, KILN_WEIGHTS_NOT_BOUND, "%s: no weights; expected bound ones", function);
  kiln_status_t status = kiln_refuse_slices(contents->model, function, error);
  if (!status && contents->arena)
    status = kiln_refuse_parts(contents->model, function, error);
  return status ? status : kiln_file_replace(path, write_contents, contents, error);
}

kiln_status_t kiln_save_weights(const kiln_model_t *model, const char *path, kiln_error_t *error) {
  const kiln_contents_t contents = {model, NULL, NULL};
  return save(&contents, path, "save_weights", error);
}

kiln_status_t kiln_save_training(const kiln_model_t *model, const void *arena, const kiln_training_t *training,
                                 const char *path, kiln_error_t *error) {
  const kiln_contents_t contents = {model, arena, training};
  if (!arena || !training)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "save_training: null given; expected %s",
                          arena ? "a step and a seed" : "an arena");
  const kiln_status_t status =
      model ? kiln_require_kept(model, arena, KILN_KEEPS_STATES | KILN_KEEPS_OPTIMIZER_STATE, "save_training", error)
            : KILN_OK;
  return status ? status : save(&contents, path, "save_training", error);
}
