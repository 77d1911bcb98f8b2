/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The Android declarations of this header that the runtime uses (README.md); the types have the system's sizes. */
#ifndef KILN_BIONIC_SCHED_H
#define KILN_BIONIC_SCHED_H

#include <stddef.h>

enum { CPU_SETSIZE = 1024 };
typedef struct {
  unsigned long bits[CPU_SETSIZE / 64];
} cpu_set_t;
#define CPU_CLR(cpu, set) ((set)->bits[(cpu) / 64] &= ~(1ul << (cpu) % 64))
#define CPU_COUNT(set) kiln_bionic_count(set)
static inline int kiln_bionic_count(const cpu_set_t *set) {
  int count = 0;
  for (int i = 0; i < CPU_SETSIZE / 64; ++i)
    count += __builtin_popcountl(set->bits[i]);
  return count;
}

int sched_getaffinity(int process, size_t bytes, cpu_set_t *set);
int sched_getcpu(void);
int sched_setaffinity(int process, size_t bytes, const cpu_set_t *set);
int sched_yield(void);

#endif /* KILN_BIONIC_SCHED_H */
