/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* What the run time uses of it on macOS (README.md). */
#ifndef KILN_DARWIN_SYS_FILE_H
#define KILN_DARWIN_SYS_FILE_H

#define LOCK_EX 2
#define LOCK_NB 4
int flock(int descriptor, int operation);

#endif /* KILN_DARWIN_SYS_FILE_H */
