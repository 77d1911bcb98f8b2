// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* The bundled thread pool. A loop is published as one atomic word, (generation, first task, tasks left), of the
 * tasks that are not yet taken: a thread that shortens it owns the task at that end, so fast threads take more, and
 * a late thread finds no tasks, or fails to take one because the generation has changed. The caller and every second
 * thread take from the front, the others from the back. Each end covers half of the loop in ascending order: a
 * thread's caches hold data of one loop that it needs in the next, and prefetches of a task target the thread's next
 * task. Threads spin briefly for work, then sleep. No thread must wake for a loop to end: the caller takes part, and
 * returns when the last task is done.
 *
 * The loop's fields are never mixed: they are written only when no task of the previous loop is left, so a thread
 * that saw tasks left but reads newer fields (release, acquire) cannot succeed in taking a task from the older word. */
#define _GNU_SOURCE /* sched_getcpu, sched_setaffinity */
#include "base/status.h"
#include "core/model.h"
#include "os/aligned.h"
#include "os/clock.h"
#include "os/threads.h"

#include <stdatomic.h>

/* Longer than the gap between two calls in a loop, so that threads stay awake while more work is expected. After
 * every SPIN_ROUNDS rounds a thread yields, in case its CPU is needed. */
enum { SPIN_NANOSECONDS = 500000, SPIN_ROUNDS = 64 };
/* The largest count that the word can hold; a longer loop runs in parts. */
enum { MOST_TASKS = 0xFFFF };

typedef void (*task_t)(void *context, uint32_t index, uint32_t worker);

typedef struct thread_t {
  kiln_pool_t *pool;
  uint32_t worker;
  kiln_thread_t handle;
} thread_t;

struct kiln_pool_t {
  kiln_executor_t executor;
  kiln_lock_t turn; /* held by the thread whose loop is running */

  _Alignas(64) _Atomic(uint64_t) left; /* generation << 32 | first task << 16 | tasks not yet taken */
  _Atomic(task_t) task;
  _Atomic(void *) context;
  atomic_uint base;                /* index of task 0 in the caller's loop */
  atomic_uint count;               /* tasks of the loop */
  atomic_int caller_cpu;           /* -1: unknown */
  _Alignas(64) atomic_uint undone; /* tasks that have not finished */

  _Alignas(64) kiln_lock_t lock; /* for sleeping and waking */
  kiln_condition_t work, finished;
  atomic_uint sleepers;      /* threads that wait for work, or are about to */
  atomic_bool caller_sleeps; /* or is about to */
  atomic_bool is_closing;

  uint32_t started;
  thread_t threads[];
};

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static int current_cpu(void) {
#if defined(__linux__)
  return sched_getcpu();
#else
  return -1;
#endif
}

/* A thread that is woken often starts on the CPU of the caller that woke it, and the two alternate there for
 * milliseconds while another CPU idles, so that short loops gain nothing from two threads (M-0930). So a thread of
 * the pool excludes the caller's CPU while it sleeps, and moves if it finds itself there. */
#if defined(__linux__)
/* Excludes `cpu` from the affinity of this thread, and saves the previous one in `allowed`; false if nothing
 * changed. */
static bool avoid_cpu(int cpu, cpu_set_t *allowed) {
  if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof *allowed, allowed) != 0)
    return false;
  cpu_set_t others = *allowed;
  CPU_CLR((size_t)cpu, &others);
  return CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0;
}
static void leave_cpu(int cpu) {
  cpu_set_t allowed;
  if (sched_getcpu() == cpu && avoid_cpu(cpu, &allowed))
    sched_setaffinity(0, sizeof allowed, &allowed);
}
#endif

static uint32_t count_of(uint64_t left) { return (uint32_t)left & MOST_TASKS; }
static bool has_work(kiln_pool_t *pool) { return count_of(atomic_load(&pool->left)) != 0; }
/* The condition that ends an idle thread's wait. */
static bool is_wanted(kiln_pool_t *pool) { return has_work(pool) || atomic_load(&pool->is_closing); }
/* The condition that ends the caller's wait. */
static bool is_done(kiln_pool_t *pool) { return atomic_load(&pool->undone) == 0; }

/* Whether the condition becomes true within the spin time. */
static bool spin_until(kiln_pool_t *pool, bool (*is_true)(kiln_pool_t *)) {
  if (is_true(pool))
    return true;
  for (int64_t end = kiln_nanoseconds() + SPIN_NANOSECONDS; kiln_nanoseconds() < end; kiln_thread_yield())
    for (int round = 0; round < SPIN_ROUNDS; ++round) {
      if (is_true(pool))
        return true;
      relax();
    }
  return false;
}

/* Returns the n-th task to be taken from an end that owns `own` tasks from `start` on: first these, ascending, then
 * the remaining tasks of the other end, descending. */
static uint32_t task_of(uint32_t n, uint32_t start, uint32_t own, uint32_t count) {
  return n < own ? start + n : (start == 0 ? count : start) - 1 - (n - own);
}

/* Runs tasks until none is left. */
static void work(kiln_pool_t *pool, uint32_t worker) {
  uint64_t left = atomic_load(&pool->left);
  const bool is_front = worker % 2 == 0;
  while (count_of(left) != 0) {
    task_t task = atomic_load_explicit(&pool->task, memory_order_acquire);
    void *context = atomic_load_explicit(&pool->context, memory_order_acquire);
    uint32_t base = atomic_load_explicit(&pool->base, memory_order_acquire);
    uint32_t count = atomic_load_explicit(&pool->count, memory_order_acquire);
    uint32_t first = (uint32_t)left >> 16, middle = (count + 1) / 2;
    if (!atomic_compare_exchange_weak(&pool->left, &left, left - 1 + ((uint64_t)is_front << 16)))
      continue;
    uint32_t index = is_front ? task_of(first, 0, middle, count)
                              : task_of(count - first - count_of(left), middle, count - middle, count);
    task(context, base + index, worker);
    if (atomic_fetch_sub(&pool->undone, 1) == 1 && atomic_load(&pool->caller_sleeps)) {
      kiln_lock_take(&pool->lock);
      kiln_condition_signal(&pool->finished);
      kiln_lock_give(&pool->lock);
    }
    left = atomic_load(&pool->left);
  }
}

static void wait_for_work(kiln_pool_t *pool) {
#if defined(__linux__)
  cpu_set_t allowed;
  bool is_narrowed = avoid_cpu(atomic_load_explicit(&pool->caller_cpu, memory_order_relaxed), &allowed);
#endif
  kiln_lock_take(&pool->lock);
  atomic_fetch_add(&pool->sleepers, 1);
  while (!is_wanted(pool))
    kiln_condition_wait(&pool->work, &pool->lock);
  atomic_fetch_sub(&pool->sleepers, 1);
  kiln_lock_give(&pool->lock);
#if defined(__linux__)
  if (is_narrowed)
    sched_setaffinity(0, sizeof allowed, &allowed);
#endif
}

static KILN_THREAD run_thread(void *argument) {
  thread_t *thread = argument;
  kiln_pool_t *pool = thread->pool;
  while (!atomic_load(&pool->is_closing)) {
    if (!spin_until(pool, is_wanted))
      wait_for_work(pool);
#if defined(__linux__)
    leave_cpu(atomic_load_explicit(&pool->caller_cpu, memory_order_relaxed));
#endif
    work(pool, thread->worker);
  }
  return KILN_THREAD_DONE;
}

/* Runs at most MOST_TASKS tasks, from `base` on; the caller holds `turn`. */
static void run_loop(kiln_pool_t *pool, uint32_t base, uint32_t count, task_t task, void *context) {
  atomic_store_explicit(&pool->task, task, memory_order_release);
  atomic_store_explicit(&pool->context, context, memory_order_release);
  atomic_store_explicit(&pool->base, base, memory_order_release);
  atomic_store_explicit(&pool->caller_cpu, current_cpu(), memory_order_relaxed);
  atomic_store_explicit(&pool->count, count, memory_order_release);
  atomic_store(&pool->undone, count);
  uint64_t generation = (atomic_load(&pool->left) >> 32) + 1;
  atomic_store(&pool->left, generation << 32 | count);
  if (count > 1 && atomic_load(&pool->sleepers) > 0) {
    kiln_lock_take(&pool->lock);
    kiln_condition_broadcast(&pool->work);
    kiln_lock_give(&pool->lock);
  }
  work(pool, 0);
  if (!spin_until(pool, is_done)) {
    kiln_lock_take(&pool->lock);
    atomic_store(&pool->caller_sleeps, true);
    while (!is_done(pool))
      kiln_condition_wait(&pool->finished, &pool->lock);
    atomic_store(&pool->caller_sleeps, false);
    kiln_lock_give(&pool->lock);
  }
}

static void parallel_for(void *self, uint32_t count, task_t task, void *context) {
  kiln_pool_t *pool = self;
  kiln_lock_take(&pool->turn);
  for (uint32_t base = 0, part; base < count; base += part) {
    part = count - base < MOST_TASKS ? count - base : MOST_TASKS;
    run_loop(pool, base, part, task, context);
  }
  kiln_lock_give(&pool->turn);
}

/* Starts threads - 1 threads; pool->started counts them. */
static bool start_threads(kiln_pool_t *pool, uint32_t threads) {
  bool is_complete = true;
  while (is_complete && pool->started + 1 < threads) {
    thread_t *thread = &pool->threads[pool->started];
    *thread = (thread_t){.pool = pool, .worker = pool->started + 1};
    is_complete = kiln_thread_start(&thread->handle, run_thread, thread);
    if (is_complete)
      ++pool->started;
  }
  return is_complete;
}

kiln_status_t kiln_pool_create(uint32_t threads, kiln_pool_t **result, kiln_error_t *error) {
  if (!result)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "pool_create: null given; expected a place for the pool");
  *result = NULL;
  if (threads == 0)
    return kiln_error_set(error, KILN_INVALID_ARGUMENT, "pool_create: no threads; expected at least 1");
  uint64_t bytes = KILN_ARENA_ROUND(sizeof(kiln_pool_t) + (uint64_t)(threads - 1) * sizeof(thread_t));
  kiln_pool_t *pool = bytes <= SIZE_MAX ? kiln_aligned_allocate(_Alignof(kiln_pool_t), (size_t)bytes) : NULL;
  if (!pool)
    return kiln_error_set(error, KILN_OUT_OF_MEMORY, "pool of %u threads: no memory; expected %llu bytes", threads,
                          (unsigned long long)bytes);
  pool->executor = (kiln_executor_t){pool, threads, parallel_for};
  pool->started = 0;
  atomic_init(&pool->left, 0);
  atomic_init(&pool->task, NULL);
  atomic_init(&pool->context, NULL);
  atomic_init(&pool->base, 0);
  atomic_init(&pool->count, 0);
  atomic_init(&pool->caller_cpu, current_cpu());
  atomic_init(&pool->undone, 0);
  atomic_init(&pool->sleepers, 0);
  atomic_init(&pool->caller_sleeps, false);
  atomic_init(&pool->is_closing, false);
  kiln_lock_init(&pool->turn);
  kiln_lock_init(&pool->lock);
  kiln_condition_init(&pool->work);
  kiln_condition_init(&pool->finished);
  if (!start_threads(pool, threads)) {
    uint32_t started = pool->started;
    kiln_pool_destroy(pool);
    return kiln_error_set(error, KILN_THREAD_ERROR, "pool of %u threads: too few started; expected %u, got %u", threads,
                          threads - 1, started);
  }
  *result = pool;
  return kiln_error_clear(error);
}

const kiln_executor_t *kiln_pool_executor(const kiln_pool_t *pool) { return pool ? &pool->executor : NULL; }

void kiln_pool_destroy(kiln_pool_t *pool) {
  if (!pool)
    return;
  kiln_lock_take(&pool->lock);
  atomic_store(&pool->is_closing, true);
  kiln_condition_broadcast(&pool->work);
  kiln_lock_give(&pool->lock);
  for (uint32_t i = 0; i < pool->started; ++i)
    kiln_thread_join(pool->threads[i].handle);
  kiln_condition_destroy(&pool->finished);
  kiln_condition_destroy(&pool->work);
  kiln_lock_destroy(&pool->lock);
  kiln_lock_destroy(&pool->turn);
  kiln_aligned_free(pool);
}
