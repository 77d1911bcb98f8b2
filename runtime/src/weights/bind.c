// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Binds a weight file to a model: every tensor is checked against the model's weights, by name, type and shape,
 * before the first byte is packed; the new packed weights replace the old ones only when they are complete. */
#include "weights/bind.h"
#include "core/instance.h"
#include "core/sharding.h"
#include "weights/convert.h"
#include "weights/format.h"
#include "weights/pack.h"

#include <string.h>

const kiln_weight_t kiln_training_numbers[KILN_TRAINING_NUMBERS] = {
    {.name = "training:step", .dtype = KILN_I32, .copies = 1},
    {.name = "training:seed", .dtype = KILN_I32, .copies = 1},
};

void kiln_weight_name(const kiln_weight_t *weight, uint32_t copy, kiln_name_t *name) {
  size_t length = strlen(weight->name);
  const char *hole = strstr(weight->name, "{}");
  size_t before = hole ? (size_t)(hole - weight->name) : length;
  name->parts[0] = weight->name;
  name->lengths[0] = before;
  name->parts[1] = name->digits;
  name->lengths[1] = hole ? kiln_text_print(name->digits, sizeof name->digits, "%u", copy) : 0;
  name->parts[2] = weight->name + (hole ? before + 2 : length);
  name->lengths[2] = hole ? length - before - 2 : 0;
}

uint64_t kiln_weight_bytes(const kiln_weight_t *weight) {
  return kiln_safetensors_stored_bytes(weight->dtype, kiln_elements_except(weight, weight->rank));
}

const char *kiln_name_text(const kiln_name_t *name, char text[KILN_NAME_SHOWN + 1]) {
  size_t length = 0;
  for (int i = 0; i < 3; ++i) {
    size_t room = KILN_NAME_SHOWN - length;
    size_t step = name->lengths[i] < room ? name->lengths[i] : room;
    memcpy(text + length, name->parts[i], step);
    length += step;
  }
  text[length] = '\0';
  return text;
}

bool kiln_weight_has_shape(const kiln_weight_t *weight, const kiln_tensor_t *tensor) {
  return weight->rank == tensor->rank &&
         memcmp(weight->shape, tensor->shape, weight->rank * sizeof weight->shape[0]) == 0;
}

kiln_status_t kiln_check_weight(const kiln_weight_t *weight, const kiln_name_t *name, kiln_tensor_t *tensor,
                                kiln_error_t *error) {
  char text[KILN_NAME_SHOWN + 1], wanted[KILN_SHAPE_TEXT_BYTES], got[KILN_SHAPE_TEXT_BYTES];
  if (!tensor)
    return kiln_error_set(error, KILN_WEIGHT_MISSING, "tensor \"%s\": not found; expected shape %s and type %s",
                          kiln_name_text(name, text), kiln_shape_text(wanted, weight->rank, weight->shape),
                          kiln_convert_sources_text(weight->dtype));
  tensor->is_used = true;
  if (!kiln_weight_has_shape(weight, tensor))
    return kiln_error_set(error, KILN_WEIGHT_SHAPE, "tensor \"%s\": wrong shape; expected %s, got %s",
                          kiln_name_text(name, text), kiln_shape_text(wanted, weight->rank, weight->shape),
                          kiln_shape_text(got, tensor->rank, tensor->shape));
  if (!kiln_convert_is_source(tensor->dtype, weight->dtype))
    return kiln_error_set(error, KILN_WEIGHT_TYPE, "tensor \"%s\": wrong type; expected %s, got %s",
                          kiln_name_text(name, text), kiln_convert_sources_text(weight->dtype),
                          kiln_safetensors_dtype_text(tensor->dtype));
  return KILN_OK;
}

/* Checks that all copies of all weights are within the packed weights; otherwise the compiler has a bug. */
static kiln_status_t check_placements(const kiln_model_t *model, kiln_error_t *error) {
  for (uint32_t i = 0; i < model->descriptor->weight_count; ++i) {
    const kiln_weight_t *weight = &model->descriptor->weights[i];
    const kiln_placement_t *placement = &model->role.placements[i];
    uint32_t first;
    const uint64_t copies = kiln_own_copies(model, weight, &first), bytes = kiln_pack_bytes(weight, placement);
    if (copies == 0 && weight->copies > 0) /* another pipeline stage has it */
      continue;
    if (copies == 0 || bytes == 0 ||
        placement->offset + (copies - 1) * placement->stride + bytes > model->role.packed_bytes)
      return kiln_error_set(error, KILN_INTERNAL_ERROR,
                            "weight \"%.*s\": wrong place; expected one in %llu packed bytes", KILN_NAME_SHOWN,
                            weight->name, (unsigned long long)model->role.packed_bytes);
  }
  return KILN_OK;
}

/* Converts an index of a slice, along its axis, to that in the whole tensor. */
static int64_t index_in_file(const kiln_packing_t *packing, int64_t index) {
  const kiln_section_t *section = packing->shard->sections;
  for (; index >= (int64_t)section->extent; ++section)
    index -= (int64_t)section->extent;
  return (int64_t)kiln_section_first(packing->shard, section, packing->rank) + index;
}

/* Reports why a weight cannot be stored in its placement's format: its first element that cannot be represented. */
static kiln_status_t refuse_value(const kiln_packing_t *packing, const kiln_tensor_t *tensor, kiln_error_t *error) {
  const kiln_weight_t *weight = packing->weight;
  const kiln_placement_t *placement = packing->placement;
  kiln_format_array_t arrays[KILN_FORMAT_ARRAYS];
  const kiln_format_t *const format = kiln_format_of(placement, arrays);
  char text[KILN_NAME_SHOWN + 1], place[KILN_SHAPE_TEXT_BYTES];
  int64_t indices[KILN_MAX_RANK];
  float value = 0;
  const uint64_t count = kiln_elements_except(weight, weight->rank);
  const kiln_rounding_t callers = kiln_rounding_begin();
  const bool is_held = kiln_pack_groups_fit(placement, tensor);
  uint64_t at = kiln_quantize_find(tensor, count, is_held ? kiln_format_find(KILN_F32, 0, false) : format, &value);
  kiln_rounding_end(callers);
  for (uint32_t i = weight->rank; i-- > 0; at /= (uint64_t)weight->shape[i])
    indices[i] = (int64_t)(at % (uint64_t)weight->shape[i]);
  if (packing->shard && packing->shard->section_count > 0)
    indices[packing->shard->dim] = index_in_file(packing, indices[packing->shard->dim]);
  return kiln_error_set(
      error, KILN_WEIGHT_VALUE, "tensor \"%s\": value does not fit; expected one of %s, got %.9g at %s",
      kiln_name_text(packing->name, text), format->text, (double)value, kiln_shape_text(place, weight->rank, indices));
}

kiln_status_t kiln_take_tensor(const kiln_packing_t *packing, const kiln_tensor_t *tensor, kiln_error_t *error) {
  return kiln_pack_tensor(packing->packed, tensor, packing->weight, packing->placement)
             ? KILN_OK
             : refuse_value(packing, tensor, error);
}

/* Packs the tensors that the model needs, which were checked, into zeroed packed weights; padding must be zero. */
static kiln_status_t take_tensors(const kiln_model_t *model, const kiln_tensors_t *table, char *packed,
                                  kiln_error_t *error) {
  const kiln_descriptor_t *descriptor = model->descriptor;
  kiln_name_t name;
  kiln_status_t status;
  for (uint32_t i = 0; i < descriptor->weight_count; ++i) {
    const kiln_weight_t *weight = &descriptor->weights[i];
    const kiln_placement_t *placement = &model->role.placements[i];
    uint32_t first = 0;
    const uint32_t copies = kiln_own_copies(model, weight, &first);
    kiln_packing_t packing = {weight, placement, &name, NULL, NULL, 0};
    for (uint32_t copy = 0; copy < copies; ++copy) {
      kiln_weight_name(weight, first + copy, &name);
      const kiln_tensor_t *tensor = kiln_tensors_find(table, &name);
      packing.packed = packed + placement->offset + copy * placement->stride;
      if ((status = descriptor->sharding ? descriptor->sharding->take(model, &packing, tensor, error)
                                         : kiln_take_tensor(&packing, tensor, error)))
        return status;
    }
  }
  return KILN_OK;
}

kiln_status_t kiln_bind_tensors(kiln_model_t *model, const kiln_tensors_t *table, kiln_error_t *error) {
  char *packed;
  void *arena;
  kiln_packed_t kind;
  kiln_status_t status;
  if ((status = check_placements(model, error)) || (status = kiln_differences_check(model, table, error)) ||
      (status = kiln_packed_allocate(model, &packed, &kind, error)))
    return status;
  if ((status = kiln_derive_prepare(model, &arena, error)) || (status = kiln_source_check(table, error)) ||
      (status = take_tensors(model, table, packed, error)))
    kiln_packed_release(model, packed, kind);
  else
    status = kiln_packed_replace(model, packed, kind, error);
  return kiln_derive(model, arena, status, error);
}

static kiln_status_t bind_table(kiln_model_t *model, kiln_tensors_t *table, const void *context, kiln_error_t *error) {
  (void)context;
  return kiln_bind_tensors(model, table, error);
}

kiln_status_t kiln_bind_weights_from_memory(kiln_model_t *model, const void *image, size_t bytes, kiln_error_t *error) {
  if (!model || !image)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "bind_weights_from_memory: null given; expected %s",
                          model ? "an image" : "a model");
  kiln_tensors_t table;
  kiln_status_t status = kiln_safetensors_open(image, bytes, &model->allocator, &table, error);
  if (status)
    return status;
  status = kiln_bind_tensors(model, &table, error);
  kiln_tensors_release(&table, &model->allocator);
  return status;
}

bool kiln_is_index(const char *path) {
  const size_t length = strlen(path), ends = strlen(".json");
  return length >= ends && strcmp(path + length - ends, ".json") == 0;
}

kiln_status_t kiln_checkpoint_take(kiln_model_t *model, const char *path, kiln_take_t take, const void *context,
                                   kiln_error_t *error) {
  kiln_file_t file;
  if (kiln_is_index(path))
    return kiln_index_take(model, path, take, context, error);
  kiln_tensors_t table;
  kiln_status_t status = kiln_source_open(model, path, &file, error);
  if (status)
    return status;
  if (!(status = kiln_safetensors_open_file(&file, &model->allocator, &table, error))) {
    status = take(model, &table, context, error);
    kiln_tensors_release(&table, &model->allocator);
  } else if (status == KILN_FILE_MALFORMED) {
    const char *const name = kiln_base_name(path);
    kiln_error_name_file(error, status, name, strlen(name));
  }
  kiln_file_unmap(&file);
  return status;
}

kiln_status_t kiln_bind_weights(kiln_model_t *model, const char *path, kiln_error_t *error) {
  if (!model || !path)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "bind_weights: null given; expected %s",
                          model ? "a path" : "a model");
  return kiln_checkpoint_take(model, path, bind_table, NULL, error);
}
