// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* The bundled pool where threads cannot be started, as in WebAssembly: only the caller runs tasks.
 * kiln/executors/wasm.h uses the workers of a host. */
#include "base/status.h"
#include "core/model.h"

#include <stdlib.h>

struct kiln_pool_t {
  kiln_executor_t executor;
};

static void parallel_for(void *self, uint32_t count, void (*task)(void *context, uint32_t index, uint32_t worker),
                         void *context) {
  (void)self;
  for (uint32_t index = 0; index < count; ++index)
    task(context, index, 0);
}

kiln_status_t kiln_pool_create(uint32_t threads, kiln_pool_t **result, kiln_error_t *error) {
  if (!result)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "pool_create: null given; expected a place for the pool");
  *result = NULL;
  if (threads == 0)
    return kiln_error_set(error, KILN_INVALID_ARGUMENT, "pool_create: no threads; expected at least 1");
  if (threads > 1)
    return kiln_error_set(error, KILN_THREAD_ERROR,
                          "pool of %u threads: no threads here; expected a system with threads", threads);
  kiln_pool_t *pool = malloc(sizeof *pool);
  if (!pool)
    return kiln_error_set(error, KILN_OUT_OF_MEMORY, "pool of %u threads: no memory; expected %zu bytes", threads,
                          sizeof *pool);
  pool->executor = (kiln_executor_t){pool, 1, parallel_for};
  *result = pool;
  return kiln_error_clear(error);
}

const kiln_executor_t *kiln_pool_executor(const kiln_pool_t *pool) { return pool ? &pool->executor : NULL; }

void kiln_pool_destroy(kiln_pool_t *pool) { free(pool); }
