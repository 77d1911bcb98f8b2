/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The Android declarations of this header that the runtime uses (README.md). */
#ifndef KILN_BIONIC_FCNTL_H
#define KILN_BIONIC_FCNTL_H

#define O_RDONLY 0
#define O_WRONLY 1
#define O_CREAT 0x40
#define O_EXCL 0x80
#define O_NONBLOCK 0x800
#define O_CLOEXEC 0x80000
int open(const char *path, int flags, ...);

#endif /* KILN_BIONIC_FCNTL_H */
