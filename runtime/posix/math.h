/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The declarations of this header that the runtime uses (README.md). */
#ifndef KILN_POSIX_MATH_H
#define KILN_POSIX_MATH_H

#define fabs __builtin_fabs
#define isinf __builtin_isinf
#define isnan __builtin_isnan

#endif /* KILN_POSIX_MATH_H */
