/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* What the run time uses of it on macOS (README.md). */
#ifndef KILN_DARWIN_SCHED_H
#define KILN_DARWIN_SCHED_H

int sched_yield(void);

#endif /* KILN_DARWIN_SCHED_H */
