/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The macOS declarations of this header that the runtime uses (README.md). */
#ifndef KILN_DARWIN_SYS_FILE_H
#define KILN_DARWIN_SYS_FILE_H

#define LOCK_EX 2
#define LOCK_NB 4
int flock(int descriptor, int operation);

#endif /* KILN_DARWIN_SYS_FILE_H */
