// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Callbacks of generated kernels: scratch memory from the worker's stack, and parallel loops on the caller's
 * executor. */
#include "core/run.h"

#include <stdatomic.h>

/* The header of each block of scratch. The blocks of a worker are linked from top to bottom. */
typedef struct block_t {
  struct block_t *below;
  bool is_free;
} block_t;
_Static_assert(sizeof(block_t) <= KILN_ARENA_ALIGNMENT, "the header fits before an aligned block");
_Static_assert(sizeof(kiln_worker_t) == KILN_ARENA_ALIGNMENT, "workers do not share a cache line");

void *kiln_malloc(void *user_context, size_t bytes) {
  kiln_worker_t *worker = user_context;
  size_t room = (size_t)(worker->end - worker->top);
  if (bytes > room || KILN_SCRATCH_BLOCK_BYTES(bytes) > room)
    return NULL;
  block_t *block = (block_t *)(void *)worker->top;
  *block = (block_t){worker->last, false};
  worker->last = block;
  worker->top += KILN_SCRATCH_BLOCK_BYTES(bytes);
  return (char *)block + KILN_ARENA_ALIGNMENT;
}

void kiln_free(void *user_context, void *memory) {
  kiln_worker_t *worker = user_context;
  if (!memory)
    return;
  ((block_t *)(void *)((char *)memory - KILN_ARENA_ALIGNMENT))->is_free = true;
  /* Compilers free a block after its last use, which need not be in stack order: it is reclaimed after those above
   * it. */
  for (block_t *block; (block = worker->last) && block->is_free; worker->last = block->below)
    worker->top = (char *)block;
}

/* A parallel loop; its address is passed through the executor. */
typedef struct loop_t {
  kiln_worker_t *workers;
  uint32_t worker_count;
  int min;
  int (*task)(void *user_context, int index, uint8_t *closure);
  uint8_t *closure;
  const kiln_tracing_t *tracing; /* null: not traced */
  atomic_int result;
} loop_t;

static void run_task(void *context, uint32_t index, uint32_t worker) {
  loop_t *loop = context;
  if (atomic_load_explicit(&loop->result, memory_order_relaxed) != 0)
    return;
  kiln_event_t event;
  if (loop->tracing)
    kiln_trace_begin_task(loop->tracing, &event, index, worker);
  /* An invalid worker number, a bug in the executor, would corrupt other memory. */
  int result = worker < loop->worker_count
                   ? loop->task(&loop->workers[worker], (int)((unsigned)loop->min + index), loop->closure)
                   : -1;
  if (loop->tracing)
    kiln_trace_end_task(loop->tracing, &event);
  if (result != 0)
    atomic_store_explicit(&loop->result, result, memory_order_relaxed);
}

int kiln_do_par_for(void *user_context, int (*task)(void *user_context, int index, uint8_t *closure), int min, int size,
                    uint8_t *closure) {
  kiln_worker_t *worker = user_context;
  const kiln_executor_t *executor = worker->executor;
  if (!executor || size <= 1) {
    for (int i = 0; i < size; ++i) {
      int result = task(user_context, min + (worker->is_backward ? size - 1 - i : i), closure);
      if (result != 0)
        return result;
    }
    return 0;
  }
  loop_t loop = {worker->workers, executor->workers, min, task, closure, worker->rest.tracing, 0};
  worker->executor = NULL; /* nested loops are serial, on worker 0 as on the others, which never have an executor */
  executor->parallel_for(executor->self, (uint32_t)size, run_task, &loop);
  worker->executor = executor;
  return atomic_load_explicit(&loop.result, memory_order_relaxed);
}
