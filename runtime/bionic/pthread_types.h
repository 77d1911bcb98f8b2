/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The types of <pthread.h> on Android; they have the system's sizes. */
#ifndef KILN_BIONIC_PTHREAD_TYPES_H
#define KILN_BIONIC_PTHREAD_TYPES_H

typedef long pthread_t;
typedef struct {
  long opaque[5];
} pthread_mutex_t;
typedef struct {
  long opaque[6];
} pthread_cond_t;

#endif /* KILN_BIONIC_PTHREAD_TYPES_H */
