/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* What the run time uses of it on macOS (README.md). */
#ifndef KILN_DARWIN_MATH_H
#define KILN_DARWIN_MATH_H

#define fabs __builtin_fabs
#define isinf __builtin_isinf
#define isnan __builtin_isnan

#endif /* KILN_DARWIN_MATH_H */
