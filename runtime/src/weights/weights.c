// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Rows of bound weights: reads them from the packed weights, and writes those of a variable there. */
#include "core/instance.h"
#include "core/sharding.h"
#include "weights/bind.h"
#include "weights/convert.h"
#include "weights/format.h"
#include "weights/pack.h"

#include <string.h>

/* Elements to read or to write; one of the two pointers is null. */
typedef struct elements_t {
  uint64_t first, count;
  char *to;
  const char *from;
} elements_t;

/* Copies elements of a tiled weight. */
static void copy_tiled(char *packed, const kiln_weight_t *weight, const kiln_placement_t *placement,
                       const elements_t *elements) {
  const size_t bytes = (size_t)kiln_safetensors_stored_bytes(weight->dtype, 1);
  const bool is_stored = kiln_is_stored(weight, placement), by_row = placement->dim == 0;
  const uint64_t columns = kiln_elements_except(weight, 0), k_extent = by_row ? columns : (uint64_t)weight->shape[0];
  kiln_format_array_t arrays[KILN_FORMAT_ARRAYS];
  const kiln_format_t *const format = kiln_format_of(placement, arrays);
  if (!is_stored)
    arrays[0] = (kiln_format_array_t){0, (uint32_t)bytes, 1, 1};
  const kiln_rounding_t callers = kiln_rounding_begin();
  uint64_t row = elements->first / columns, column = elements->first % columns;
  for (uint64_t at = 0; at < elements->count * bytes; at += bytes) {
    const uint64_t n = placement->shift + (by_row ? row : column), k = by_row ? column : row;
    char *items[KILN_FORMAT_ARRAYS];
    for (int i = 0; i < KILN_FORMAT_ARRAYS; ++i)
      items[i] =
          packed + arrays[i].offset + kiln_format_item(&arrays[i], placement->tile, k_extent, n, k) * arrays[i].bytes;
    if (is_stored) {
      const float value = kiln_format_decode(format, (const char *const *)items,
                                             placement->tile * (size_t)arrays[0].bytes, k % arrays[0].each);
      memcpy(elements->to + at, &value, sizeof value);
    } else if (elements->from) {
      memcpy(items[0], elements->from + at, bytes);
    } else {
      memcpy(elements->to + at, items[0], bytes);
    }
    if (++column == columns) {
      column = 0;
      ++row;
    }
  }
  kiln_rounding_end(callers);
}

static kiln_status_t copy_host(char *packed, const kiln_weight_t *weight, const kiln_placement_t *placement,
                               const elements_t *elements) {
  const bool is_all = elements->count == kiln_elements_except(weight, weight->rank);
  if (placement->tile == 0) {
    const size_t bytes = (size_t)kiln_safetensors_stored_bytes(weight->dtype, elements->count);
    packed += kiln_safetensors_stored_bytes(weight->dtype, placement->shift + elements->first);
    memcpy(elements->from ? packed : elements->to, elements->from ? elements->from : packed, bytes);
  } else if (elements->from && is_all) {
    (void)kiln_pack_weight(packed, elements->from, weight->dtype, weight,
                           placement); /* cannot fail for elements of its own type */
  } else {
    copy_tiled(packed, weight, placement, elements);
  }
  return KILN_OK;
}

/* Copies elements of a weight in device memory. If the layout there is that of the caller, elements are copied
 * directly; else the whole weight is copied to the host, and back if it changed. */
static kiln_status_t copy_device(const kiln_model_t *model, char *packed, const kiln_weight_t *weight,
                                 const kiln_placement_t *placement, const elements_t *elements, kiln_error_t *error) {
  const kiln_backend_t *backend = model->variant->backend;
  const uint64_t all = kiln_pack_bytes(weight, placement);
  void *memory;
  kiln_status_t status;
  if (placement->tile == 0) {
    const uint64_t bytes = kiln_safetensors_stored_bytes(weight->dtype, elements->count);
    packed += kiln_safetensors_stored_bytes(weight->dtype, placement->shift + elements->first);
    return elements->from ? backend->copy(model, KILN_COPY_IN, packed, elements->from, bytes, error)
                          : backend->copy(model, KILN_COPY_OUT, elements->to, packed, bytes, error);
  }
  if ((status = kiln_memory_allocate(&model->allocator, all, "a weight on its way", &memory, error)))
    return status;
  if (!(status = backend->copy(model, KILN_COPY_OUT, memory, packed, all, error))) {
    copy_tiled(memory, weight, placement, elements);
    if (elements->from)
      status = backend->copy(model, KILN_COPY_IN, packed, memory, all, error);
  }
  model->allocator.release(model->allocator.self, memory);
  return status;
}

static kiln_status_t copy_weight(const kiln_model_t *model, uint32_t index, uint32_t copy, const elements_t *elements,
                                 kiln_error_t *error) {
  const kiln_weight_t *weight = &model->descriptor->weights[index];
  const kiln_placement_t *placement = &model->role.placements[index];
  char *packed = model->packed + placement->offset + copy * placement->stride;
  return model->variant->backend ? copy_device(model, packed, weight, placement, elements, error)
                                 : copy_host(packed, weight, placement, elements);
}

/* The rows that a caller requests. */
typedef struct rows_t {
  const char *weight;
  uint64_t first, count;
  char *to;
  const char *from;
} rows_t;

/* Reports an invalid request, except for row numbers out of range. */
static kiln_status_t refuse(const rows_t *rows, kiln_status_t status, const char *wanted, kiln_error_t *error) {
  return kiln_error_set(error, status, "rows of a weight: no access; expected %s, got \"%.*s\"", wanted,
                        KILN_NAME_SHOWN, rows->weight ? rows->weight : "");
}

static kiln_status_t copy_rows(const kiln_model_t *model, uint32_t index, uint32_t copy, const rows_t *rows,
                               kiln_error_t *error) {
  const kiln_weight_t *weight = &model->descriptor->weights[index];
  const uint64_t extent = weight->rank ? (uint64_t)weight->shape[0] : 1, columns = kiln_elements_except(weight, 0);
  if (rows->from && !(weight->flags & KILN_WEIGHT_VARIABLE))
    return refuse(rows, KILN_INVALID_ARGUMENT, "a variable to write", error);
  if (rows->from && kiln_is_stored(weight, &model->role.placements[index]))
    return refuse(rows, KILN_INVALID_ARGUMENT, "a variable stored in its own type to write", error);
  if (rows->first > extent || rows->count > extent - rows->first)
    return kiln_error_set(error, KILN_EXTENT_OUT_OF_RANGE,
                          "weight \"%.*s\": rows out of range; expected %llu, got %llu from row %llu", KILN_NAME_SHOWN,
                          rows->weight, (unsigned long long)extent, (unsigned long long)rows->count,
                          (unsigned long long)rows->first);
  return copy_weight(model, index, copy,
                     &(elements_t){rows->first * columns, rows->count * columns, rows->to, rows->from}, error);
}

static kiln_status_t copy_named(const kiln_model_t *model, const rows_t *rows, kiln_error_t *error) {
  kiln_name_t name;
  kiln_status_t status = KILN_WEIGHT_MISSING;
  if (!model || !rows->weight || (!rows->to && !rows->from))
    return refuse(rows, KILN_NULL_ARGUMENT, "a model, a name and values", error);
  if (!model->packed)
    return refuse(rows, KILN_WEIGHTS_NOT_BOUND, "bound weights", error);
  /* Two weights may have the same name if a tensor is packed twice. */
  for (uint32_t i = 0; i < model->descriptor->weight_count; ++i) {
    const kiln_weight_t *weight = &model->descriptor->weights[i];
    uint32_t first;
    const uint32_t copies = kiln_own_copies(model, weight, &first);
    for (uint32_t copy = 0; copy < copies; ++copy) {
      kiln_weight_name(weight, first + copy, &name);
      if (kiln_name_order(&name, rows->weight, strlen(rows->weight)) != 0)
        continue;
      if ((status = copy_rows(model, i, copy, rows, error)))
        return status;
    }
  }
  const bool is_stage = model->descriptor->stages > 1;
  return status ? refuse(rows, status, is_stage ? "a name that the stage has" : "a name of the weight table", error)
                : kiln_error_clear(error);
}

kiln_status_t kiln_read_weight(const kiln_model_t *model, const char *weight, uint64_t row, uint64_t rows, void *values,
                               kiln_error_t *error) {
  return copy_named(model, &(rows_t){weight, row, rows, values, NULL}, error);
}

kiln_status_t kiln_write_weight(kiln_model_t *model, const char *weight, uint64_t row, uint64_t rows,
                                const void *values, kiln_error_t *error) {
  return copy_named(model, &(rows_t){weight, row, rows, NULL, values}, error);
}

bool kiln_weight_changes(const kiln_model_t *model, uint32_t index) {
  const kiln_weight_t *weight = &model->descriptor->weights[index];
  return (weight->flags & KILN_WEIGHT_VARIABLE) && !kiln_is_stored(weight, &model->role.placements[index]);
}

kiln_status_t kiln_read_elements(const kiln_model_t *model, uint32_t index, uint32_t copy, uint64_t first,
                                 uint64_t count, void *values, kiln_error_t *error) {
  return copy_weight(model, index, copy, &(elements_t){first, count, values, NULL}, error);
}

kiln_status_t kiln_write_elements(kiln_model_t *model, uint32_t index, uint32_t copy, uint64_t first, uint64_t count,
                                  const void *values, kiln_error_t *error) {
  return copy_weight(model, index, copy, &(elements_t){first, count, NULL, values}, error);
}
