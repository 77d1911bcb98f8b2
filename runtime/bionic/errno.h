/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The Android declarations of this header that the runtime uses (README.md). */
#ifndef KILN_BIONIC_ERRNO_H
#define KILN_BIONIC_ERRNO_H

int *__errno(void);
#define errno (*__errno())
#define ENOENT 2
#define EINTR 4
#define EEXIST 17
#define EINVAL 22
#define ENAMETOOLONG 36
#define ELOOP 40

#endif /* KILN_BIONIC_ERRNO_H */
