/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The macOS declarations of this header that the runtime uses (README.md). */
#ifndef KILN_DARWIN_TIME_H
#define KILN_DARWIN_TIME_H

struct timespec {
  long tv_sec, tv_nsec;
};
#define CLOCK_MONOTONIC 6
int clock_gettime(int clock, struct timespec *time);

#endif /* KILN_DARWIN_TIME_H */
