/* SPDX-License-Identifier: Apache-2.0 */
/* What the run time uses of it on macOS (README.md). */
#ifndef KILN_DARWIN_UNISTD_H
#define KILN_DARWIN_UNISTD_H

#include <stddef.h>

typedef long ssize_t;
#define _SC_PAGESIZE 29
#define _SC_NPROCESSORS_ONLN 58
int close(int descriptor);
int fsync(int descriptor);
int getpid(void);
ssize_t read(int descriptor, void *bytes, size_t count);
long sysconf(int name);
int unlink(const char *path);
ssize_t write(int descriptor, const void *bytes, size_t count);

#endif /* KILN_DARWIN_UNISTD_H */
