/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The macOS declarations of this header that the runtime uses (README.md), only for arm64. */
#ifndef KILN_DARWIN_FENV_H
#define KILN_DARWIN_FENV_H

typedef struct {
  unsigned long long fpsr, fpcr;
} fenv_t;
extern const fenv_t _FE_DFL_ENV;
#define FE_DFL_ENV (&_FE_DFL_ENV)
int fegetenv(fenv_t *environment);
int fesetenv(const fenv_t *environment);

#endif /* KILN_DARWIN_FENV_H */
