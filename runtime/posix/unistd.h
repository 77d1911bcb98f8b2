/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The declarations of this header that the runtime uses (README.md). */
#ifndef KILN_POSIX_UNISTD_H
#define KILN_POSIX_UNISTD_H

#include <stddef.h>
#include <unistd_types.h>

typedef long ssize_t;
typedef unsigned uid_t, gid_t;

int close(int descriptor);
int fchown(int descriptor, uid_t owner, gid_t group);
int fsync(int descriptor);
int getpid(void);
ssize_t pread(int descriptor, void *bytes, size_t count, off_t offset);
ssize_t read(int descriptor, void *bytes, size_t count);
ssize_t readlink(const char *path, char *to, size_t bytes);
long sysconf(int name);
int unlink(const char *path);
ssize_t write(int descriptor, const void *bytes, size_t count);

#endif /* KILN_POSIX_UNISTD_H */
