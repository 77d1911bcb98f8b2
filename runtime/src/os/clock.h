/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* A monotonic clock. */
#ifndef KILN_CLOCK_H
#define KILN_CLOCK_H

#include <stdint.h>
#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <time.h>
#endif

static inline int64_t kiln_nanoseconds(void) {
  const int64_t second = 1000000000;
#if defined(_WIN32)
  LARGE_INTEGER now, rate;
  QueryPerformanceCounter(&now);
  QueryPerformanceFrequency(&rate);
  return now.QuadPart / rate.QuadPart * second + now.QuadPart % rate.QuadPart * second / rate.QuadPart;
#else
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * second + time.tv_nsec;
#endif
}

#endif /* KILN_CLOCK_H */
