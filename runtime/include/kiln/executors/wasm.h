/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* An executor on web workers, or workers of Node.js, that share the memory of a WebAssembly module, for C11 and C++:
 *
 *   static kiln_wasm_workers_t workers;
 *   const kiln_call_t call = {.arena = arena, .arena_bytes = bytes, .executor = kiln_wasm_executor(&workers, 4)};
 *
 *   __attribute__((export_name("help"))) void help(uint32_t worker) { kiln_wasm_help(&workers, worker); }
 *
 * Three workers instantiate the same module on the same memory, each with its own stack, and call help(1), help(2) and
 * help(3), which do not return: the host ends the workers. The calling thread takes part as worker 0. A loop ends when
 * its tasks are done, whether or not all workers have started. docs/executors.md has the rules, examples/web shows a
 * page that does this. */
#ifndef KILN_EXECUTORS_WASM_H
#define KILN_EXECUTORS_WASM_H

#ifndef __wasm_atomics__
#error "kiln/executors/wasm.h: no atomic instructions of WebAssembly; expected -matomics"
#endif
#ifndef KILN_RUNTIME_H /* a generated NAME.h that was included before contains this header, too */
#include "kiln/runtime.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Must be zero-initialised; executor is for kiln_call_t. */
typedef struct kiln_wasm_workers_t {
  kiln_executor_t executor;
  /* The loop: read inside an open gate, and written while no worker is inside. */
  void (*task)(void *context, uint32_t index, uint32_t worker);
  void *context;
  uint32_t count;
  uint32_t is_taken; /* a thread's loop is using the workers */
  uint32_t sleepers;
  __attribute__((aligned(64))) uint32_t loop; /* number of loops so far; workers wait for a change */
  uint32_t gate;                              /* number of workers inside, and KILN_WASM_OPEN while more may enter */
  __attribute__((aligned(64))) uint64_t next; /* next task index; exceeds `count` by up to one per worker */
} kiln_wasm_workers_t;

/* Spins longer than most gaps between two loops of a call, so that most loops need not wake any worker. */
enum { KILN_WASM_SPINS = 20000 };
#define KILN_WASM_OPEN 0x80000000u

/* Waits until the word differs from `old` and returns its value: spins briefly, then sleeps. */
static inline uint32_t kiln_wasm_await(kiln_wasm_workers_t *workers, uint32_t *word, uint32_t old) {
  uint32_t now = old;
  for (uint32_t spin = 0; spin < KILN_WASM_SPINS; ++spin)
    if ((now = __atomic_load_n(word, __ATOMIC_ACQUIRE)) != old)
      return now;
  __atomic_fetch_add(&workers->sleepers, 1, __ATOMIC_SEQ_CST);
  while ((now = __atomic_load_n(word, __ATOMIC_SEQ_CST)) == old)
    __builtin_wasm_memory_atomic_wait32((int *)word, (int)old, -1);
  __atomic_fetch_sub(&workers->sleepers, 1, __ATOMIC_SEQ_CST);
  return now;
}

/* Wakes up to `most` of the workers that sleep until the word changes. */
static inline void kiln_wasm_wake(kiln_wasm_workers_t *workers, uint32_t *word, uint32_t most) {
  if (__atomic_load_n(&workers->sleepers, __ATOMIC_SEQ_CST) != 0)
    __builtin_wasm_memory_atomic_notify((int *)word, most);
}

/* Runs tasks of the current loop until none is left. */
static inline void kiln_wasm_work(kiln_wasm_workers_t *workers, uint32_t worker) {
  for (uint64_t i; (i = __atomic_fetch_add(&workers->next, 1, __ATOMIC_RELAXED)) < workers->count;)
    workers->task(workers->context, (uint32_t)i, worker);
}

/* kiln_executor_t::parallel_for. */
static inline void kiln_wasm_parallel_for(void *self, uint32_t count,
                                          void (*task)(void *context, uint32_t index, uint32_t worker), void *context) {
  kiln_wasm_workers_t *workers = (kiln_wasm_workers_t *)self;
  const uint32_t helpers = workers->executor.workers - 1;
  /* Another thread's loop may be using the workers, or an enclosing loop of this thread. */
  if (count < 2 || helpers == 0 || __atomic_exchange_n(&workers->is_taken, 1, __ATOMIC_ACQUIRE)) {
    for (uint32_t i = 0; i < count; ++i)
      task(context, i, 0);
    return;
  }
  workers->task = task;
  workers->context = context;
  workers->count = count;
  __atomic_store_n(&workers->next, 0, __ATOMIC_RELAXED);
  __atomic_fetch_add(&workers->gate, KILN_WASM_OPEN, __ATOMIC_RELEASE);
  __atomic_fetch_add(&workers->loop, 1, __ATOMIC_SEQ_CST);
  kiln_wasm_wake(workers, &workers->loop, count - 1 < helpers ? count - 1 : helpers);
  kiln_wasm_work(workers, 0);
  uint32_t inside = __atomic_sub_fetch(&workers->gate, KILN_WASM_OPEN, __ATOMIC_ACQ_REL);
  while (inside != 0)
    inside = kiln_wasm_await(workers, &workers->gate, inside);
  __atomic_store_n(&workers->is_taken, 0, __ATOMIC_RELEASE);
}

/* At most `threads` threads run a loop, including the calling one, which must be allowed to block: in a page, a
 * worker. */
static inline const kiln_executor_t *kiln_wasm_executor(kiln_wasm_workers_t *workers, uint32_t threads) {
  workers->executor.self = workers;
  workers->executor.workers = threads;
  workers->executor.parallel_for = kiln_wasm_parallel_for;
  return &workers->executor;
}

/* Called by each worker except the calling thread, with its own number from 1 to threads - 1. Does not return. */
static inline void kiln_wasm_help(kiln_wasm_workers_t *workers, uint32_t worker) {
  for (uint32_t seen = 0;;) {
    seen = kiln_wasm_await(workers, &workers->loop, seen);
    if (__atomic_fetch_add(&workers->gate, 1, __ATOMIC_ACQUIRE) & KILN_WASM_OPEN)
      kiln_wasm_work(workers, worker);
    if (__atomic_fetch_sub(&workers->gate, 1, __ATOMIC_SEQ_CST) == 1)
      kiln_wasm_wake(workers, &workers->gate, 1);
  }
}

#ifdef __cplusplus
}
#endif
#endif /* KILN_EXECUTORS_WASM_H */
