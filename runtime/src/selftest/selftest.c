// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Runs a library's entries on inputs for which the compiler has evaluated the results: this finds miscompiled code,
 * and code that has changed since. A separate file, since only archives with a self-test define its table. */
#include "core/selftest.h"

#include "core/instance.h"
#include "core/run.h"
#include "readers/files.h"
#include "selftest/counter.h"
#include "weights/convert.h"

#include <math.h>
#include <string.h>

/* The model under test, and memory for its calls. */
typedef struct test_t {
  kiln_model_t *model;
  void *arena;
  uint64_t arena_bytes;
} test_t;

/* Checks the embedded weights of all variants, whichever one runs on this machine. */
static kiln_status_t check_embedded(const kiln_descriptor_t *descriptor, kiln_error_t *error) {
  const kiln_selftest_t *table = &kiln_selftest_table;
  for (uint32_t i = 0; table->embedded && i < descriptor->variant_count; ++i) {
    const kiln_variant_t *variant = &descriptor->variants[i];
    if (kiln_selftest_digest(0, table->embedded[i], (size_t)variant->packed_bytes) != table->digests[i])
      return kiln_error_set(error, KILN_SELFTEST_FAILED,
                            "selftest of \"%.*s\": wrong weights; expected those embedded for %s", KILN_NAME_SHOWN,
                            descriptor->name, variant->target);
  }
  return kiln_error_clear(error);
}

/* The largest arena of an entry, with one worker. */
static uint64_t arena_bytes(const kiln_model_t *model) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < model->descriptor->entry_count; ++i) {
    const kiln_body_t *body = &model->variant->bodies[i];
    const uint64_t bytes = kiln_arena_fixed_bytes(body->plan_bytes, body->scratch_bytes, body->task_bytes) +
                           kiln_arena_worker_bytes(body->task_bytes) + body->staging_bytes;
    most = bytes > most ? bytes : most;
  }
  return most;
}

static double element(const kiln_argument_t *argument, const void *values, uint64_t index) {
  float number;
  switch (argument->dtype) {
  case KILN_I32:
    return ((const int32_t *)values)[index];
  case KILN_I8:
    return ((const int8_t *)values)[index];
  case KILN_BOOL:
    return ((const uint8_t *)values)[index];
  default:
    kiln_convert_widen(&number, (const char *)values + index * kiln_safetensors_stored_bytes(argument->dtype, 1), 1,
                       argument->dtype);
    return (double)number;
  }
}

static kiln_status_t compare(const test_t *test, const kiln_entry_t *entry, const kiln_argument_t *argument,
                             const kiln_expected_t *expected, const void *values, kiln_error_t *error) {
  for (uint64_t i = 0; i < expected->count; ++i) {
    const uint64_t at = i * expected->stride;
    const double wanted = expected->values[i], got = element(argument, values, at);
    if (isnan(wanted)
            ? isnan(got)
            : wanted == got || fabs(got - wanted) <= expected->tolerances[i] || isinf(expected->tolerances[i]))
      continue;
    return kiln_error_set(error, KILN_SELFTEST_FAILED,
                          "selftest of %s for %s: wrong \"%s\"; expected %.9g at element %llu, within %.2g, got %.9g",
                          entry->name, test->model->variant->target, argument->name, wanted, (unsigned long long)at,
                          expected->tolerances[i], got);
  }
  return KILN_OK;
}

/* The number of elements of an argument, and its rounded size in bytes. */
typedef struct room_t {
  uint64_t elements, bytes;
} room_t;

static room_t room_of(const kiln_argument_t *argument, const int64_t *extents) {
  const uint64_t elements = (uint64_t)kiln_argument_elements(argument, extents);
  return (room_t){elements, KILN_ARENA_ROUND(kiln_safetensors_stored_bytes(argument->dtype, elements))};
}

/* `pointers` is a buffer for the pointers to the arguments, followed by each argument. */
static kiln_status_t call(const test_t *test, const kiln_trial_t *trial, void **pointers, kiln_error_t *error) {
  const kiln_entry_t *entry = &test->model->descriptor->entries[trial->entry];
  char *next = (char *)pointers + KILN_ARENA_ROUND(entry->argument_count * sizeof *pointers);
  for (uint32_t i = 0; i < entry->argument_count; ++i) {
    const kiln_argument_t *argument = &entry->arguments[i];
    const room_t room = room_of(argument, trial->extents);
    if (argument->is_output)
      memset(next, 0xFF, (size_t)room.bytes); /* NaN, so that missing writes are detected */
    else
      kiln_counter_fill(argument, trial->extents, trial->seed, next, room.elements);
    pointers[i] = next;
    next += room.bytes;
  }
  const kiln_call_t given = {.arena = test->arena, .arena_bytes = (size_t)test->arena_bytes, .error = error};
  kiln_status_t status = kiln_run(test->model, &given, trial->entry, trial->extents, pointers);
  const kiln_expected_t *expected = trial->outputs;
  for (uint32_t i = 0; i < entry->argument_count && !status; ++i)
    if (entry->arguments[i].is_output)
      status = compare(test, entry, &entry->arguments[i], expected++, pointers[i], error);
  return status;
}

static kiln_status_t run_trial(const test_t *test, const kiln_trial_t *trial, kiln_error_t *error) {
  const kiln_entry_t *entry = &test->model->descriptor->entries[trial->entry];
  uint64_t bytes = KILN_ARENA_ROUND(entry->argument_count * sizeof(void *));
  void *memory;
  kiln_status_t status = KILN_OK;
  for (uint32_t i = 0; i < entry->argument_count; ++i)
    bytes += room_of(&entry->arguments[i], trial->extents).bytes;
  /* States are zero initially, and weights are as bound. */
  if (trial->is_first && ((status = kiln_zero_memory(test->model, test->arena, (size_t)test->arena_bytes, error)) ||
                          (status = kiln_bind_counter(test->model, error))))
    return status;
  if ((status = kiln_memory_allocate(&test->model->allocator, bytes, "arguments of the self-test", &memory, error)))
    return status;
  status = call(test, trial, (void **)memory, error);
  test->model->allocator.release(test->model->allocator.self, memory);
  return status;
}

kiln_status_t kiln_selftest(const kiln_options_t *options, kiln_error_t *error) {
  const kiln_options_t none = {.allocator = NULL};
  test_t test = {NULL, NULL, 0};
  kiln_status_t status = kiln_create_on(options ? options : &none, &test.model, error);
  if (status)
    return status;
  test.arena_bytes = arena_bytes(test.model);
  if (!(status = check_embedded(test.model->descriptor, error)))
    status = kiln_allocate_memory(test.model, (size_t)test.arena_bytes, &test.arena, error);
  for (uint64_t i = 0; i < kiln_selftest_table.trial_count && !status; ++i)
    status = run_trial(&test, &kiln_selftest_table.trials[i], error);
  kiln_release_memory(test.model, test.arena);
  kiln_destroy(test.model);
  return status;
}
