/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The declarations of this header that the runtime uses (README.md). */
#ifndef KILN_POSIX_SYS_FILE_H
#define KILN_POSIX_SYS_FILE_H

#define LOCK_EX 2
#define LOCK_NB 4
int flock(int descriptor, int operation);

#endif /* KILN_POSIX_SYS_FILE_H */
