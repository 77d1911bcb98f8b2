/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The type of offsets and the constants of <unistd.h> on Android. */
#ifndef KILN_BIONIC_UNISTD_TYPES_H
#define KILN_BIONIC_UNISTD_TYPES_H

typedef long off_t;
#define _SC_PAGESIZE 39
#define _SC_NPROCESSORS_ONLN 97

#endif /* KILN_BIONIC_UNISTD_TYPES_H */
