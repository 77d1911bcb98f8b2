/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The macOS declarations of this header that the runtime uses (README.md). */
#ifndef KILN_DARWIN_ERRNO_H
#define KILN_DARWIN_ERRNO_H

int *__error(void);
#define errno (*__error())
#define ENOENT 2
#define EINTR 4
#define EEXIST 17
#define EINVAL 22
#define ELOOP 62
#define ENAMETOOLONG 63

#endif /* KILN_DARWIN_ERRNO_H */
