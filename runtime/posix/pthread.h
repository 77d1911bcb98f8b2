/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The declarations of this header that the runtime uses (README.md). */
#ifndef KILN_POSIX_PTHREAD_H
#define KILN_POSIX_PTHREAD_H

#include <pthread_types.h>
#include <signal.h>

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

#endif /* KILN_POSIX_PTHREAD_H */
