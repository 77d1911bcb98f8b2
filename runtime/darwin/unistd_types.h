/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The type of offsets and the constants of <unistd.h> on Apple's systems. */
#ifndef KILN_DARWIN_UNISTD_TYPES_H
#define KILN_DARWIN_UNISTD_TYPES_H

typedef long long off_t;
#define _SC_PAGESIZE 29
#define _SC_NPROCESSORS_ONLN 58

#endif /* KILN_DARWIN_UNISTD_TYPES_H */
