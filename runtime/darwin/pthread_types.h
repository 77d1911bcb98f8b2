/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The types of <pthread.h> on Apple's systems; they have the system's sizes. */
#ifndef KILN_DARWIN_PTHREAD_TYPES_H
#define KILN_DARWIN_PTHREAD_TYPES_H

typedef struct kiln_darwin_thread_t *pthread_t;
typedef struct {
  long signature;
  char opaque[56];
} pthread_mutex_t;
typedef struct {
  long signature;
  char opaque[40];
} pthread_cond_t;

#endif /* KILN_DARWIN_PTHREAD_TYPES_H */
