/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of Android's C library whose types or constants differ from glibc's, by glibc's: an archive for Android
 * runs with them on Linux. The linker replaces calls of NAME by __wrap_NAME, and __real_NAME is glibc's. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern __typeof__(pthread_cond_broadcast) __real_pthread_cond_broadcast;
extern __typeof__(pthread_cond_destroy) __real_pthread_cond_destroy;
extern __typeof__(pthread_cond_init) __real_pthread_cond_init;
extern __typeof__(pthread_cond_signal) __real_pthread_cond_signal;
extern __typeof__(pthread_cond_wait) __real_pthread_cond_wait;
extern __typeof__(pthread_mutex_destroy) __real_pthread_mutex_destroy;
extern __typeof__(pthread_mutex_init) __real_pthread_mutex_init;
extern __typeof__(pthread_mutex_lock) __real_pthread_mutex_lock;
extern __typeof__(pthread_mutex_unlock) __real_pthread_mutex_unlock;
extern __typeof__(sysconf) __real_sysconf;

int *__errno(void) { return &errno; }

static void stop(const char *what) {
  fprintf(stderr, "bionic: another argument of %s\n", what);
  exit(120);
}

long __wrap_sysconf(int name) {
  if (name != 39 && name != 97)
    stop("sysconf");
  return __real_sysconf(name == 39 ? _SC_PAGESIZE : _SC_NPROCESSORS_ONLN);
}

int __wrap_strerror_r(int number, char *text, size_t room) {
  return snprintf(text, room, "%s", strerror(number)) < 0 ? EINVAL : 0;
}

/* A set is one word there. */
int __wrap_sigfillset(unsigned long *set) {
  *set = ~0ul;
  return 0;
}
int __wrap_pthread_sigmask(int how, const unsigned long *set, unsigned long *before) {
  (void)set;
  if (how != SIG_SETMASK)
    stop("pthread_sigmask");
  if (before)
    *before = 0;
  return 0;
}

/* glibc's types may be larger: the program's have a pointer to one of these. */
int __wrap_pthread_mutex_init(pthread_mutex_t **mutex, const void *attributes) {
  if (attributes)
    stop("pthread_mutex_init");
  *mutex = malloc(sizeof **mutex);
  return *mutex ? __real_pthread_mutex_init(*mutex, NULL) : ENOMEM;
}
int __wrap_pthread_mutex_destroy(pthread_mutex_t **mutex) {
  const int result = __real_pthread_mutex_destroy(*mutex);
  free(*mutex);
  return result;
}
int __wrap_pthread_mutex_lock(pthread_mutex_t **mutex) { return __real_pthread_mutex_lock(*mutex); }
int __wrap_pthread_mutex_unlock(pthread_mutex_t **mutex) { return __real_pthread_mutex_unlock(*mutex); }

int __wrap_pthread_cond_init(pthread_cond_t **condition, const void *attributes) {
  if (attributes)
    stop("pthread_cond_init");
  *condition = malloc(sizeof **condition);
  return *condition ? __real_pthread_cond_init(*condition, NULL) : ENOMEM;
}
int __wrap_pthread_cond_destroy(pthread_cond_t **condition) {
  const int result = __real_pthread_cond_destroy(*condition);
  free(*condition);
  return result;
}
int __wrap_pthread_cond_wait(pthread_cond_t **condition, pthread_mutex_t **mutex) {
  return __real_pthread_cond_wait(*condition, *mutex);
}
int __wrap_pthread_cond_signal(pthread_cond_t **condition) { return __real_pthread_cond_signal(*condition); }
int __wrap_pthread_cond_broadcast(pthread_cond_t **condition) { return __real_pthread_cond_broadcast(*condition); }
