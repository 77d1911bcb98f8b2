/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that compare.mjs calls. */
#include "shapes.h"

#include <stdlib.h>

#ifdef __wasm_atomics__
#include "kiln/executors/wasm.h"
#endif

#define EXPORT(name) __attribute__((export_name(#name)))

static shapes_t *model;
static kiln_error_t error;
static kiln_call_t call;

EXPORT(take) void *take(size_t bytes) {
  return aligned_alloc(KILN_ARENA_ALIGNMENT,
                       (bytes + KILN_ARENA_ALIGNMENT - 1) / KILN_ARENA_ALIGNMENT * KILN_ARENA_ALIGNMENT);
}
EXPORT(give_back) void give_back(void *memory) { free(memory); }
EXPORT(reason) const char *reason(void) { return error.message; }

#ifdef __wasm_atomics__
static kiln_wasm_workers_t workers;
EXPORT(use_threads) void use_threads(uint32_t count) { call.executor = kiln_wasm_executor(&workers, count); }
EXPORT(help) void help(uint32_t worker) { kiln_wasm_help(&workers, worker); }
#endif

EXPORT(open_model) int open_model(const void *weights, size_t bytes) {
  call.arena_bytes = SHAPES_BLOCK_ARENA_BYTES(call.executor ? call.executor->workers : 1);
  call.arena = take(call.arena_bytes);
  call.error = &error;
  const kiln_status_t status = shapes_create(NULL, &model, &error);
  return status ? status : shapes_bind_weights_from_memory(model, weights, bytes, &error);
}

#define ENTRY(entry)                                                                                                   \
  EXPORT(entry) int entry(int rows, const float *x, float *y) { return shapes_##entry(model, &call, rows, x, y); }
ENTRY(square)
ENTRY(up)
ENTRY(down)
ENTRY(block)
