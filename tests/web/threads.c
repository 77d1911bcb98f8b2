/* SPDX-License-Identifier: Apache-2.0 */
/* Additions of threads_test.mjs to the page's module with threads: test loops, and counts of the tasks that each
 * worker ran. */
#include "exports.h"

enum { MOST_WORKERS = 8, MOST_TASKS = 1000 };

typedef void (*task_t)(void *context, uint32_t index, uint32_t worker);

static uint32_t mistakes, arrived, ended, runs[MOST_TASKS];
static uint32_t is_busy[MOST_WORKERS], ran[MOST_WORKERS];

static void run(uint32_t count, task_t task) { executor->parallel_for(executor->self, count, task, NULL); }
static uint32_t add(uint32_t *number) { return __atomic_add_fetch(number, 1, __ATOMIC_SEQ_CST); }

static void note(void *context, uint32_t index, uint32_t worker) {
  (void)context;
  if (worker >= executor->workers || __atomic_exchange_n(&is_busy[worker], 1, __ATOMIC_SEQ_CST)) {
    add(&mistakes);
    return;
  }
  ++runs[index];
  __atomic_store_n(&is_busy[worker], 0, __ATOMIC_SEQ_CST);
}

/* Returns the number of indices that did not run exactly once, and of worker numbers that two tasks used at a time. */
EXPORT(mistakes_of_loop) uint32_t mistakes_of_loop(uint32_t count) {
  mistakes = 0;
  for (uint32_t i = 0; i < count; ++i)
    runs[i] = 0;
  run(count, note);
  for (uint32_t i = 0; i < count; ++i)
    mistakes += runs[i] != 1;
  return mistakes;
}

static void wait_for_all(void *context, uint32_t index, uint32_t worker) {
  (void)context, (void)index, (void)worker;
  for (add(&arrived); __atomic_load_n(&arrived, __ATOMIC_SEQ_CST) < executor->workers;) {
  }
}

/* Returns only if each thread runs one task. */
EXPORT(meet) void meet(void) {
  arrived = 0;
  run(executor->workers, wait_for_all);
}

static void end(void *context, uint32_t index, uint32_t worker) {
  (void)context, (void)index, (void)worker;
  add(&ended);
}
static void run_inner(void *context, uint32_t index, uint32_t worker) {
  (void)context, (void)worker;
  run(index, end);
}

/* Returns how many tasks ended in loops of 0, 1, ... count - 1 tasks nested in a loop. */
EXPORT(tasks_inside) uint32_t tasks_inside(uint32_t count) {
  ended = 0;
  run(count, run_inner);
  return ended;
}

/* An executor that counts the tasks of each worker, and delegates to another one. */
typedef struct loop_t {
  task_t task;
  void *context;
} loop_t;

static void run_counted(void *context, uint32_t index, uint32_t worker) {
  const loop_t *loop = context;
  ++ran[worker];
  loop->task(loop->context, index, worker);
}
static void count_loop(void *self, uint32_t count, task_t task, void *context) {
  const kiln_executor_t *other = self;
  loop_t loop = {task, context};
  other->parallel_for(other->self, count, run_counted, &loop);
}

/* Starts counting; must be called before models are opened. */
EXPORT(count_tasks) void count_tasks(void) {
  static kiln_executor_t counting;
  counting = (kiln_executor_t){(void *)(uintptr_t)executor, executor->workers, count_loop};
  executor = &counting;
}
EXPORT(tasks_of) uint32_t tasks_of(uint32_t worker) { return ran[worker]; }
