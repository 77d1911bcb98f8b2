/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The macOS declarations of this header that the runtime uses (README.md). */
#ifndef KILN_DARWIN_SIGNAL_H
#define KILN_DARWIN_SIGNAL_H

typedef unsigned sigset_t;
#define SIG_SETMASK 3
int sigfillset(sigset_t *set);

#endif /* KILN_DARWIN_SIGNAL_H */
