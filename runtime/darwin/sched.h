/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The macOS declarations of this header that the runtime uses (README.md). */
#ifndef KILN_DARWIN_SCHED_H
#define KILN_DARWIN_SCHED_H

int sched_yield(void);

#endif /* KILN_DARWIN_SCHED_H */
