/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* What the run time uses of it on macOS (README.md). */
#ifndef KILN_DARWIN_SIGNAL_H
#define KILN_DARWIN_SIGNAL_H

typedef unsigned sigset_t;
#define SIG_SETMASK 3
int sigfillset(sigset_t *set);

#endif /* KILN_DARWIN_SIGNAL_H */
