// SPDX-License-Identifier: Apache-2.0
/* The way into an entry: check everything that the caller gave, lay out the arena, run the body. Allocates nothing. */
#include "internal.h"

static int64_t extent_value(const kiln_extent_t *extent, const int64_t *extents) {
  int64_t value = extent->factor;
  for (int i = 0; i < 2; ++i)
    if (extent->symbol[i] >= 0)
      value *= extents[extent->symbol[i]];
  return extent->offset + value;
}

int64_t kiln_argument_elements(const kiln_argument_t *argument, const int64_t *extents) {
  int64_t count = 1;
  for (uint32_t d = 0; d < argument->rank; ++d)
    count *= extent_value(&argument->extents[d], extents);
  return count;
}

static kiln_status_t check_extents(const kiln_entry_t *entry, const int64_t *extents, kiln_error_t *error) {
  if (!extents && entry->symbol_count > 0)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "%s requires extents, got null", entry->name);
  for (uint32_t i = 0; i < entry->symbol_count; ++i) {
    const kiln_symbol_t *symbol = &entry->symbols[i];
    if (extents[i] < symbol->min || extents[i] > symbol->max)
      return kiln_error_set(error, KILN_EXTENT_OUT_OF_RANGE, "%s requires %s in [%lld, %lld], got %lld", entry->name,
                            symbol->name, (long long)symbol->min, (long long)symbol->max, (long long)extents[i]);
  }
  for (uint32_t i = 0; i < entry->symbol_count; ++i) {
    const kiln_symbol_t *symbol = &entry->symbols[i];
    if (symbol->least > 0 && extents[i] < extents[symbol->least - 1])
      return kiln_error_set(error, KILN_EXTENT_OUT_OF_RANGE, "%s requires %s of at least %s, which is %lld, got %lld",
                            entry->name, symbol->name, entry->symbols[symbol->least - 1].name,
                            (long long)extents[symbol->least - 1], (long long)extents[i]);
  }
  return KILN_OK;
}

static kiln_status_t check_pointers(const kiln_entry_t *entry, void *const *arguments, kiln_error_t *error) {
  if (!arguments && entry->argument_count > 0)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "%s requires arguments, got null", entry->name);
  for (uint32_t i = 0; i < entry->argument_count; ++i)
    if (!arguments[i])
      return kiln_error_set(error, KILN_NULL_ARGUMENT, "%s requires %s \"%s\", got null", entry->name,
                            entry->arguments[i].is_output ? "output" : "input", entry->arguments[i].name);
  return KILN_OK;
}

static kiln_status_t check_executor(const kiln_entry_t *entry, const kiln_executor_t *executor, kiln_error_t *error) {
  if (executor && !executor->parallel_for)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "%s requires an executor with parallel_for, got null",
                          entry->name);
  if (executor && executor->workers == 0)
    return kiln_error_set(error, KILN_INVALID_ARGUMENT, "%s requires an executor of at least 1 worker, got 0",
                          entry->name);
  return KILN_OK;
}

static kiln_status_t check_arena(const kiln_entry_t *entry, const kiln_body_t *body, const kiln_call_t *call,
                                 uint32_t workers, kiln_error_t *error) {
  uint64_t needed = kiln_arena_fixed_bytes(body->plan_bytes) + body->staging_bytes +
                    workers * kiln_arena_worker_bytes(body->scratch_bytes);
  if (!call->arena)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "%s requires an arena, got null", entry->name);
  if ((uintptr_t)call->arena % KILN_ARENA_ALIGNMENT != 0)
    return kiln_error_set(error, KILN_ARENA_MISALIGNED, "%s requires an arena aligned to %d bytes, got %u past it",
                          entry->name, KILN_ARENA_ALIGNMENT, (unsigned)((uintptr_t)call->arena % KILN_ARENA_ALIGNMENT));
  if (call->arena_bytes < needed)
    return kiln_error_set(error, KILN_ARENA_TOO_SMALL, "%s requires an arena of %llu bytes for %u workers, got %llu",
                          entry->name, (unsigned long long)needed, workers, (unsigned long long)call->arena_bytes);
  return KILN_OK;
}

static kiln_status_t check_indices(const kiln_entry_t *entry, const int64_t *extents, void *const *arguments,
                                   kiln_error_t *error) {
  for (uint32_t i = 0; i < entry->argument_count; ++i) {
    const kiln_argument_t *argument = &entry->arguments[i];
    if (!argument->is_checked)
      continue;
    const int32_t *values = arguments[i];
    int64_t limit = extent_value(&argument->limit, extents), count = kiln_argument_elements(argument, extents);
    for (int64_t at = 0; at < count; ++at)
      if (values[at] < argument->minimum || values[at] >= limit)
        return kiln_error_set(error, KILN_INDEX_OUT_OF_RANGE,
                              "%s requires \"%s\" in [%lld, %lld], got %d at element %lld", entry->name, argument->name,
                              (long long)argument->minimum, (long long)limit - 1, values[at], (long long)at);
  }
  return KILN_OK;
}

/* Words of a later version, or an uninitialised struct. */
static kiln_status_t check_reserved(const kiln_entry_t *entry, const kiln_call_t *call, bool is_on_cpu) {
  if (is_on_cpu && (call->stream || call->memory != KILN_HOST_POINTERS))
    return kiln_error_set(call->error, KILN_INVALID_ARGUMENT,
                          "%s requires a null stream and memory %d on a CPU, got stream %p and memory %llu",
                          entry->name, KILN_HOST_POINTERS, call->stream, (unsigned long long)call->memory);
  for (size_t i = 0; i < sizeof call->reserved / sizeof call->reserved[0]; ++i)
    if (call->reserved[i])
      return kiln_error_set(call->error, KILN_INVALID_ARGUMENT,
                            "%s requires that the call's reserved fields are null, got a pointer in field %zu",
                            entry->name, i);
  return KILN_OK;
}

kiln_status_t kiln_body_run(const kiln_model_t *model, uint32_t entry, const kiln_frame_t *frame, kiln_error_t *error) {
  int result = model->variant->bodies[entry].run(frame);
  if (result != 0)
    return kiln_error_set(error, KILN_INTERNAL_ERROR, "%s of model \"%.*s\" requires a result of 0, got %d",
                          model->descriptor->entries[entry].name, KILN_NAME_SHOWN, model->descriptor->name, result);
  return kiln_error_clear(error);
}

static kiln_status_t run_on_cpu(const kiln_model_t *model, const kiln_call_t *call, uint32_t index, uint32_t workers,
                                const int64_t *extents, void *const *arguments) {
  const kiln_body_t *body = &model->variant->bodies[index];
  uint64_t scratch_bytes = KILN_ARENA_ROUND(body->scratch_bytes);
  char *scratch = (char *)call->arena + kiln_arena_fixed_bytes(body->plan_bytes);
  kiln_worker_t *table = (kiln_worker_t *)(void *)(scratch + workers * scratch_bytes);
  for (uint32_t i = 0; i < workers; ++i) {
    char *begin = scratch + i * scratch_bytes;
    table[i] = (kiln_worker_t){.workers = table, .top = begin, .end = begin + scratch_bytes};
  }
  table[0].executor = workers > 1 ? call->executor : NULL;
  const kiln_frame_t frame = {table, model->packed, call->arena, extents, arguments, NULL};
  return kiln_body_run(model, index, &frame, call->error);
}

kiln_status_t kiln_run(const kiln_model_t *model, const kiln_call_t *call, uint32_t entry_index, const int64_t *extents,
                       void *const *arguments) {
  kiln_error_t *error = call ? call->error : NULL;
  kiln_status_t status;
  if (!model || !call)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "an entry requires a model, got null");
  const kiln_descriptor_t *descriptor = model->descriptor;
  if (entry_index >= descriptor->entry_count)
    return kiln_error_set(error, KILN_INTERNAL_ERROR, "model \"%.*s\" requires an entry below %u, got %u",
                          KILN_NAME_SHOWN, descriptor->name, descriptor->entry_count, entry_index);
  const kiln_entry_t *entry = &descriptor->entries[entry_index];
  const kiln_backend_t *backend = model->variant->backend;
  if ((status = check_reserved(entry, call, !backend)))
    return status;
  uint32_t workers = call->executor && !backend ? call->executor->workers : 1;
  if (!model->packed && descriptor->weight_count > 0)
    return kiln_error_set(error, KILN_WEIGHTS_NOT_BOUND, "%s requires bound weights, got none", entry->name);
  if ((status = check_extents(entry, extents, error)) || (status = check_pointers(entry, arguments, error)) ||
      (status = check_executor(entry, call->executor, error)) ||
      (status = check_arena(entry, &model->variant->bodies[entry_index], call, workers, error)) ||
      (call->memory == KILN_HOST_POINTERS && (status = check_indices(entry, extents, arguments, error))))
    return status;
  return backend ? backend->run(model, call, entry_index, extents, arguments)
                 : run_on_cpu(model, call, entry_index, workers, extents, arguments);
}
