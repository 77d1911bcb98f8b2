/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a module with shared memory: the calling one, and workers that help it. */
#include "exports.h"
#include "kiln/executors/wasm.h"

static kiln_wasm_workers_t workers;

/* Must be called before models are opened. */
EXPORT(use_threads) void use_threads(uint32_t count) {
  threads = count;
  executor = kiln_wasm_executor(&workers, count);
}

/* Runs worker 1, 2, ...: does not return. */
EXPORT(help) void help(uint32_t worker) { kiln_wasm_help(&workers, worker); }
