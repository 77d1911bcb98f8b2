/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The Android declarations of this header that the runtime uses (README.md). */
#ifndef KILN_BIONIC_SIGNAL_H
#define KILN_BIONIC_SIGNAL_H

typedef unsigned long sigset_t;
#define SIG_SETMASK 2
int sigfillset(sigset_t *set);

#endif /* KILN_BIONIC_SIGNAL_H */
