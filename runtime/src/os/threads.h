/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* POSIX or Windows threads, for the pool. */
#ifndef KILN_THREADS_H
#define KILN_THREADS_H

#include <stdbool.h>
#include <stdint.h>
#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#endif

#if defined(_WIN32)

typedef SRWLOCK kiln_lock_t;
static inline void kiln_lock_init(kiln_lock_t *lock) { InitializeSRWLock(lock); }
static inline void kiln_lock_take(kiln_lock_t *lock) { AcquireSRWLockExclusive(lock); }
static inline void kiln_lock_give(kiln_lock_t *lock) { ReleaseSRWLockExclusive(lock); }
static inline void kiln_lock_destroy(kiln_lock_t *lock) { (void)lock; }

typedef CONDITION_VARIABLE kiln_condition_t;
static inline void kiln_condition_init(kiln_condition_t *condition) { InitializeConditionVariable(condition); }
static inline void kiln_condition_wait(kiln_condition_t *condition, kiln_lock_t *lock) {
  SleepConditionVariableSRW(condition, lock, INFINITE, 0);
}
static inline void kiln_condition_signal(kiln_condition_t *condition) { WakeConditionVariable(condition); }
static inline void kiln_condition_broadcast(kiln_condition_t *condition) { WakeAllConditionVariable(condition); }
static inline void kiln_condition_destroy(kiln_condition_t *condition) { (void)condition; }

typedef HANDLE kiln_thread_t;
/* The declaration and the return value of a thread's function. */
#define KILN_THREAD DWORD WINAPI
#define KILN_THREAD_DONE 0
static inline bool kiln_thread_start(kiln_thread_t *thread, LPTHREAD_START_ROUTINE run, void *argument) {
  *thread = CreateThread(NULL, 0, run, argument, 0, NULL);
  return *thread != NULL;
}
static inline void kiln_thread_join(kiln_thread_t thread) {
  WaitForSingleObject(thread, INFINITE);
  CloseHandle(thread);
}
static inline void kiln_thread_yield(void) { SwitchToThread(); }

#else

typedef pthread_mutex_t kiln_lock_t;
static inline void kiln_lock_init(kiln_lock_t *lock) { pthread_mutex_init(lock, NULL); }
static inline void kiln_lock_take(kiln_lock_t *lock) { pthread_mutex_lock(lock); }
static inline void kiln_lock_give(kiln_lock_t *lock) { pthread_mutex_unlock(lock); }
static inline void kiln_lock_destroy(kiln_lock_t *lock) { pthread_mutex_destroy(lock); }

typedef pthread_cond_t kiln_condition_t;
static inline void kiln_condition_init(kiln_condition_t *condition) { pthread_cond_init(condition, NULL); }
static inline void kiln_condition_wait(kiln_condition_t *condition, kiln_lock_t *lock) {
  pthread_cond_wait(condition, lock);
}
static inline void kiln_condition_signal(kiln_condition_t *condition) { pthread_cond_signal(condition); }
static inline void kiln_condition_broadcast(kiln_condition_t *condition) { pthread_cond_broadcast(condition); }
static inline void kiln_condition_destroy(kiln_condition_t *condition) { pthread_cond_destroy(condition); }

typedef pthread_t kiln_thread_t;
#define KILN_THREAD void *
#define KILN_THREAD_DONE NULL
/* Blocks all signals, so that the program's signal handlers run on the program's own threads. */
static inline bool kiln_thread_start(kiln_thread_t *thread, void *(*run)(void *), void *argument) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool is_started = pthread_create(thread, NULL, run, argument) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return is_started;
}
static inline void kiln_thread_join(kiln_thread_t thread) { pthread_join(thread, NULL); }
static inline void kiln_thread_yield(void) { sched_yield(); }

#endif
#endif /* KILN_THREADS_H */
