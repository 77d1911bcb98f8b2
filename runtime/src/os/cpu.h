// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* CPU feature detection, cpu.c. */
#ifndef KILN_CPU_H
#define KILN_CPU_H

#include "kiln/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The CPUID and XGETBV registers that define the x86-64 levels, and AT_HWCAP of Linux on other CPUs. */
typedef struct kiln_cpu_t {
  uint32_t leaf1_ecx, leaf7_ebx, extended1_ecx;
  uint64_t saved_state; /* XCR0: the registers that the system saves; 0 without XGETBV */
  uint32_t leaf7_ecx;
  uint64_t arm_capabilities, riscv_capabilities; /* AT_HWCAP, or its bits from another system */
  bool is_wasm;
} kiln_cpu_t;
/* Members of other architectures are zero. */
kiln_cpu_t kiln_cpu_detect(void);
/* Returns the KILN_CPU_ bits that the CPU and its operating system support. */
uint64_t kiln_cpu_features(const kiln_cpu_t *cpu);
/* Returns the name of the highest level among the features, such as "x86-64-v2"; never null. */
const char *kiln_cpu_text(uint64_t features);

#ifdef __cplusplus
}
#endif
#endif /* KILN_CPU_H */
