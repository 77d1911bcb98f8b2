/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The macOS declarations of this header that the runtime uses (README.md). */
#ifndef KILN_DARWIN_FCNTL_H
#define KILN_DARWIN_FCNTL_H

#define O_RDONLY 0
#define O_WRONLY 1
#define O_NONBLOCK 0x4
#define O_CREAT 0x200
#define O_EXCL 0x800
#define O_CLOEXEC 0x1000000
int open(const char *path, int flags, ...);

#endif /* KILN_DARWIN_FCNTL_H */
