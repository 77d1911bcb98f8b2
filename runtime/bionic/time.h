/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The Android declarations of this header that the runtime uses (README.md). */
#ifndef KILN_BIONIC_TIME_H
#define KILN_BIONIC_TIME_H

struct timespec {
  long tv_sec, tv_nsec;
};
#define CLOCK_MONOTONIC 1
int clock_gettime(int clock, struct timespec *time);

#endif /* KILN_BIONIC_TIME_H */
