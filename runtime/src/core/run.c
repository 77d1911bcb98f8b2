// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Runs an entry: checks all arguments, lays out the arena, runs the body. Allocates nothing. */
#include "core/run.h"
#include "core/instance.h"
#include "core/sharding.h"

int64_t kiln_extent_value(const kiln_extent_t *extent, const int64_t *extents) {
  int64_t terms[2] = {extent->factor, extent->second};
  for (int i = 0; i < 4; ++i)
    if (extent->symbol[i] >= 0)
      terms[i / 2] *= extents[extent->symbol[i]];
  return extent->offset + terms[0] + terms[1];
}

int64_t kiln_argument_elements(const kiln_argument_t *argument, const int64_t *extents) {
  int64_t count = 1;
  for (uint32_t d = 0; d < argument->rank; ++d)
    count *= kiln_extent_value(&argument->extents[d], extents);
  return count;
}

/* Checks the dimensions of the call, or of one of its sequences. */
static kiln_status_t check_extents(const kiln_entry_t *entry, const kiln_symbol_t *symbols, uint32_t count,
                                   const int64_t *extents, kiln_error_t *error) {
  if (!extents && count > 0)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "%s: null given; expected extents", entry->name);
  for (uint32_t i = 0; i < count; ++i) {
    const kiln_symbol_t *symbol = &symbols[i];
    if (extents[i] < symbol->min || extents[i] > symbol->max)
      return kiln_error_set(error, KILN_EXTENT_OUT_OF_RANGE, "%s: %s out of range; expected [%lld, %lld], got %lld",
                            entry->name, symbol->name, (long long)symbol->min, (long long)symbol->max,
                            (long long)extents[i]);
  }
  for (uint32_t i = 0; i < count; ++i) {
    const kiln_symbol_t *symbol = &symbols[i];
    if (symbol->least > 0 && extents[i] < extents[symbol->least - 1])
      return kiln_error_set(error, KILN_EXTENT_OUT_OF_RANGE,
                            "%s: %s too small; expected at least %s, which is %lld, got %lld", entry->name,
                            symbol->name, symbols[symbol->least - 1].name, (long long)extents[symbol->least - 1],
                            (long long)extents[i]);
  }
  return KILN_OK;
}

/* With pipeline parallelism, only the last stage may have an output. */
static kiln_status_t check_pointers(const kiln_model_t *model, const kiln_entry_t *entry, void *const *arguments,
                                    kiln_error_t *error) {
  if (!arguments && entry->argument_count > 0)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "%s: null given; expected arguments", entry->name);
  for (uint32_t i = 0; i < entry->argument_count; ++i)
    if (!arguments[i] && !(model->role.is_silent && entry->arguments[i].is_output == KILN_OUTPUT_OF_LAST))
      return kiln_error_set(error, KILN_NULL_ARGUMENT, "%s: null given; expected %s \"%s\"", entry->name,
                            entry->arguments[i].is_output ? "output" : "input", entry->arguments[i].name);
  return KILN_OK;
}

static kiln_status_t check_executor(const kiln_entry_t *entry, const kiln_executor_t *executor, kiln_error_t *error) {
  if (executor && !executor->parallel_for)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "%s: null given; expected an executor with parallel_for",
                          entry->name);
  if (executor && executor->workers == 0)
    return kiln_error_set(error, KILN_INVALID_ARGUMENT, "%s: executor without workers; expected at least 1",
                          entry->name);
  return KILN_OK;
}

static kiln_status_t check_trace(const kiln_entry_t *entry, const kiln_trace_t *trace, kiln_error_t *error) {
  if (trace && (!trace->begin || !trace->end))
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "%s: null given; expected a trace with begin and end",
                          entry->name);
  return KILN_OK;
}

static kiln_status_t check_arena(const kiln_entry_t *entry, const kiln_body_t *body, const kiln_call_t *call,
                                 uint32_t workers, kiln_error_t *error) {
  const uint64_t needed = kiln_body_arena_bytes(body, workers);
  if (!call->arena)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "%s: null given; expected an arena", entry->name);
  if ((uintptr_t)call->arena % KILN_ARENA_ALIGNMENT != 0)
    return kiln_error_set(error, KILN_ARENA_MISALIGNED, "%s: arena misaligned; expected alignment %d, got %u past it",
                          entry->name, KILN_ARENA_ALIGNMENT, (unsigned)((uintptr_t)call->arena % KILN_ARENA_ALIGNMENT));
  if (call->arena_bytes < needed)
    return kiln_error_set(error, KILN_ARENA_TOO_SMALL,
                          "%s: arena too small; expected %llu bytes for %u workers, got %llu", entry->name,
                          (unsigned long long)needed, workers, (unsigned long long)call->arena_bytes);
  return KILN_OK;
}

static kiln_status_t check_indices(const kiln_entry_t *entry, const int64_t *extents, void *const *arguments,
                                   kiln_error_t *error) {
  for (uint32_t i = 0; i < entry->argument_count; ++i) {
    const kiln_argument_t *argument = &entry->arguments[i];
    if (!argument->is_checked)
      continue;
    const int32_t *values = arguments[i];
    int64_t limit = kiln_extent_value(&argument->limit, extents), count = kiln_argument_elements(argument, extents);
    for (int64_t at = 0; at < count; ++at)
      if (values[at] < argument->minimum || values[at] >= limit)
        return kiln_error_set(
            error, KILN_INDEX_OUT_OF_RANGE, "%s: \"%s\" out of range; expected [%lld, %lld], got %d at element %lld",
            entry->name, argument->name, (long long)argument->minimum, (long long)limit - 1, values[at], (long long)at);
  }
  return KILN_OK;
}

/* Rejects members of a later version, or an uninitialised struct. */
static kiln_status_t check_reserved(const kiln_model_t *model, const kiln_entry_t *entry, const kiln_call_t *call) {
  if (!model->variant->backend && (call->stream || call->memory != KILN_HOST_POINTERS))
    return kiln_error_set(call->error, KILN_INVALID_ARGUMENT,
                          "%s: not for a CPU; expected a null stream and memory %d, got %p and %llu", entry->name,
                          KILN_HOST_POINTERS, call->stream, (unsigned long long)call->memory);
  if ((call->communicator || call->replicas || call->stages) && !model->descriptor->sharding)
    return kiln_error_set(call->error, KILN_INVALID_ARGUMENT, "%s: communicator set; expected null ones", entry->name);
  for (size_t i = 0; i < sizeof call->reserved / sizeof call->reserved[0]; ++i)
    if (call->reserved[i])
      return kiln_error_set(call->error, KILN_INVALID_ARGUMENT,
                            "%s: reserved field set; expected null, got a pointer in field " KILN_SIZE, entry->name, i);
  return KILN_OK;
}

kiln_status_t kiln_body_run(const kiln_model_t *model, uint32_t entry, const kiln_frame_t *frame, kiln_error_t *error) {
  int result = model->role.bodies[entry].run(frame);
  if (result == KILN_NOT_FINITE)
    return kiln_error_set(error, KILN_NOT_FINITE,
                          "%s of model \"%.*s\": no weight changed; expected a finite loss, learning rate and "
                          "gradients, and a step from 1 on",
                          model->descriptor->entries[entry].name, KILN_NAME_SHOWN, model->descriptor->name);
  if (result != 0)
    return kiln_error_set(error, KILN_INTERNAL_ERROR, "%s of model \"%.*s\": wrong result; expected 0, got %d",
                          model->descriptor->entries[entry].name, KILN_NAME_SHOWN, model->descriptor->name, result);
  return kiln_error_clear(error);
}

static kiln_status_t run_on_cpu(const kiln_model_t *model, const kiln_call_t *call, uint32_t index, uint32_t workers,
                                const kiln_extents_t *extents, void *const *arguments) {
  const kiln_body_t *body = &model->role.bodies[index];
  const uint64_t own_bytes = KILN_ARENA_ROUND(body->scratch_bytes), task_bytes = KILN_ARENA_ROUND(body->task_bytes);
  char *top = (char *)call->arena + KILN_ARENA_ROUND(body->plan_bytes);
  kiln_worker_t *table = (kiln_worker_t *)(void *)(top + own_bytes + (workers - 1) * task_bytes);
  for (uint32_t i = 0; i < workers; ++i) {
    char *end = top + (i == 0 ? own_bytes : task_bytes);
    table[i] = (kiln_worker_t){.workers = table, .top = top, .end = end};
    top = end;
  }
  table[0].executor = workers > 1 ? call->executor : NULL;
  kiln_tracing_t tracing;
  table[0].rest.tracing = kiln_trace_call(&tracing, call, &model->descriptor->entries[index]);
  const kiln_frame_t frame = {.worker = table,
                              .weights = model->packed,
                              .arena = call->arena,
                              .extents = extents->values,
                              .arguments = arguments,
                              .sequences = extents->sequences,
                              .tracing = table[0].rest.tracing};
  const kiln_sharding_t *sharding = model->descriptor->sharding;
  return sharding ? sharding->run(model, call, index, &frame) : kiln_body_run(model, index, &frame, call->error);
}

/* Checks that the data that the entry reads of earlier calls were initialised. */
static kiln_status_t check_kept(const kiln_model_t *model, const kiln_entry_t *entry, const kiln_call_t *call,
                                const kiln_extents_t *extents) {
  kiln_status_t status = KILN_OK;
  if (!entry->is_batch)
    return kiln_check_kept(model, call->arena, entry->keeps, entry->name, call->error);
  for (int64_t i = 0; entry->keeps && !status && i < extents->values[0]; ++i)
    status = kiln_check_kept(model, extents->sequences[i].states, entry->keeps, entry->name, call->error);
  return status;
}

kiln_status_t kiln_run_checked(const kiln_model_t *model, const kiln_call_t *call, uint32_t index,
                               const kiln_extents_t *extents, void *const *arguments) {
  const kiln_entry_t *entry = &model->descriptor->entries[index];
  const kiln_backend_t *backend = model->variant->backend;
  kiln_error_t *error = call->error;
  uint32_t workers = call->executor && !backend ? call->executor->workers : 1;
  kiln_status_t status;
  if ((status = check_pointers(model, entry, arguments, error)) ||
      (status = check_executor(entry, call->executor, error)) || (status = check_trace(entry, call->trace, error)) ||
      (status = check_arena(entry, &model->role.bodies[index], call, workers, error)) ||
      (call->memory == KILN_HOST_POINTERS && (status = check_indices(entry, extents->values, arguments, error))) ||
      (!backend && (status = check_kept(model, entry, call, extents))))
    return status;
  return backend ? backend->run(model, call, index, extents, arguments)
                 : run_on_cpu(model, call, index, workers, extents, arguments);
}

/* Checks that the entry exists, and that the model can run it. */
static kiln_status_t check_entry(const kiln_model_t *model, const kiln_call_t *call, uint32_t index, bool is_batch) {
  kiln_error_t *error = call ? call->error : NULL;
  if (!model || !call)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "entry: null given; expected a model");
  const kiln_descriptor_t *descriptor = model->descriptor;
  if (index >= descriptor->entry_count || descriptor->entries[index].is_batch != is_batch)
    return kiln_error_set(error, KILN_INTERNAL_ERROR, "model \"%.*s\": no such entry; expected one below %u, got %u",
                          KILN_NAME_SHOWN, descriptor->name, descriptor->entry_count, index);
  const kiln_entry_t *entry = &descriptor->entries[index];
  kiln_status_t status = check_reserved(model, entry, call);
  if (!status && !model->packed && descriptor->weight_count > 0)
    return kiln_error_set(error, KILN_WEIGHTS_NOT_BOUND, "%s: no weights; expected bound ones", entry->name);
  return status;
}

kiln_status_t kiln_run(const kiln_model_t *model, const kiln_call_t *call, uint32_t index, const int64_t *extents,
                       void *const *arguments) {
  kiln_status_t status = check_entry(model, call, index, false);
  if (status)
    return status;
  const kiln_entry_t *entry = &model->descriptor->entries[index];
  if ((status = check_extents(entry, entry->symbols, entry->symbol_count, extents, call->error)))
    return status;
  return kiln_run_checked(model, call, index, &(kiln_extents_t){extents, NULL}, arguments);
}

static kiln_status_t check_sequence(const kiln_entry_t *entry, const kiln_sequence_t *sequences, size_t number,
                                    kiln_error_t *error) {
  const kiln_sequence_t *sequence = &sequences[number];
  if (!sequence->states && entry->state_bytes > 0)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "%s: null given; expected states of sequence " KILN_SIZE,
                          entry->name, number);
  if ((uintptr_t)sequence->states % KILN_ARENA_ALIGNMENT != 0)
    return kiln_error_set(error, KILN_ARENA_MISALIGNED,
                          "%s: states misaligned; expected alignment %d, got %u past it of sequence " KILN_SIZE,
                          entry->name, KILN_ARENA_ALIGNMENT,
                          (unsigned)((uintptr_t)sequence->states % KILN_ARENA_ALIGNMENT), number);
  for (size_t other = 0; other < number; ++other) {
    const uintptr_t here = (uintptr_t)sequence->states, there = (uintptr_t)sequences[other].states;
    if ((here < there ? there - here : here - there) < entry->state_bytes)
      return kiln_error_set(error, KILN_INVALID_ARGUMENT,
                            "%s: sequences share states; expected separate ones for " KILN_SIZE " and " KILN_SIZE,
                            entry->name, other, number);
  }
  return check_extents(entry, entry->own_symbols, entry->own_symbol_count, sequence->extents, error);
}

kiln_status_t kiln_run_batch(const kiln_model_t *model, const kiln_call_t *call, uint32_t index, size_t count,
                             const kiln_sequence_t *sequences, void *const *arguments) {
  kiln_status_t status = check_entry(model, call, index, true);
  if (status)
    return status;
  const kiln_entry_t *entry = &model->descriptor->entries[index];
  int64_t extents[2] = {(int64_t)count, 0}; /* number of sequences, total rows */
  if (!sequences)
    return kiln_error_set(call->error, KILN_NULL_ARGUMENT, "%s: null given; expected sequences", entry->name);
  if ((status = check_extents(entry, entry->symbols, 1, extents, call->error)))
    return status;
  for (size_t i = 0; i < count; ++i) {
    if ((status = check_sequence(entry, sequences, i, call->error)))
      return status;
    extents[1] += entry->own_rows ? sequences[i].extents[entry->own_rows - 1] : 0;
  }
  if ((status = check_extents(entry, entry->symbols, entry->symbol_count, extents, call->error)))
    return status;
  return kiln_run_checked(model, call, index, &(kiln_extents_t){extents, sequences}, arguments);
}
