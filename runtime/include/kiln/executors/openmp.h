/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* An executor on OpenMP's threads, for C (C89 or later) and C++ (C++11 or later):
 *
 *   const kiln_executor_t executor = kiln_openmp_executor(4);
 *   const kiln_call_t call = {.arena = arena, .arena_bytes = sizeof arena, .executor = &executor};
 *
 * It has no state, so it may be copied, and one executor serves any number of calls. docs/executors.md has the rules.
 */
#ifndef KILN_EXECUTORS_OPENMP_H
#define KILN_EXECUTORS_OPENMP_H

#ifndef _OPENMP
#error "kiln/executors/openmp.h: no OpenMP; expected -fopenmp"
#endif
#ifndef KILN_RUNTIME_H /* a generated NAME.h that was included before contains this header, too */
#include "kiln/runtime.h"
#endif

#include <omp.h>

#ifdef __cplusplus
extern "C" {
#endif

KILN_INLINE void kiln_openmp_parallel_for(void *self, uint32_t count,
                                          void (*task)(void *context, uint32_t index, uint32_t worker), void *context) {
  const int threads = (int)(intptr_t)self;
  const int64_t tasks = count; /* OpenMP 2 has no unsigned loops */
  int64_t i;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
  for (i = 0; i < tasks; ++i)
    task(context, (uint32_t)i, (uint32_t)omp_get_thread_num());
}

/* At most `workers` threads run a loop, including the calling thread, which is worker 0. */
KILN_INLINE kiln_executor_t kiln_openmp_executor(uint32_t workers) {
  kiln_executor_t executor;
  executor.self = (void *)(intptr_t)workers;
  executor.workers = workers;
  executor.parallel_for = kiln_openmp_parallel_for;
  return executor;
}

#ifdef __cplusplus
}
#endif
#endif /* KILN_EXECUTORS_OPENMP_H */
