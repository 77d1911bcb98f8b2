/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The Android declarations of this header that the runtime uses (README.md). */
#ifndef KILN_BIONIC_SYS_AUXV_H
#define KILN_BIONIC_SYS_AUXV_H

#define AT_HWCAP 16
unsigned long getauxval(unsigned long type);

#endif /* KILN_BIONIC_SYS_AUXV_H */
