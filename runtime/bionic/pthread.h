/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The Android declarations of this header that the runtime uses (README.md); the types have the system's sizes. */
#ifndef KILN_BIONIC_PTHREAD_H
#define KILN_BIONIC_PTHREAD_H

#include <signal.h>

typedef long pthread_t;
typedef struct {
  long opaque[5];
} pthread_mutex_t;
typedef struct {
  long opaque[6];
} pthread_cond_t;

int pthread_create(pthread_t *thread, const void *attributes, void *(*run)(void *), void *argument);
int pthread_join(pthread_t thread, void **result);
int pthread_mutex_init(pthread_mutex_t *mutex, const void *attributes);
int pthread_mutex_destroy(pthread_mutex_t *mutex);
int pthread_mutex_lock(pthread_mutex_t *mutex);
int pthread_mutex_unlock(pthread_mutex_t *mutex);
int pthread_cond_init(pthread_cond_t *condition, const void *attributes);
int pthread_cond_destroy(pthread_cond_t *condition);
int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int pthread_cond_signal(pthread_cond_t *condition);
int pthread_cond_broadcast(pthread_cond_t *condition);
int pthread_sigmask(int how, const sigset_t *set, sigset_t *before);

#endif /* KILN_BIONIC_PTHREAD_H */
