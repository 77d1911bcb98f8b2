// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* What the CPU can run, cpu.c. */
#ifndef KILN_CPU_H
#define KILN_CPU_H

#include "kiln/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The words of CPUID and XGETBV that the x86-64 levels are made of, and what Linux says of an Arm CPU (AT_HWCAP). */
typedef struct kiln_cpu_t {
  uint32_t leaf1_ecx, leaf7_ebx, extended1_ecx;
  uint64_t saved_state; /* XCR0: the registers that the system saves; 0 without XGETBV */
  uint32_t leaf7_ecx;
  uint64_t arm_capabilities, riscv_capabilities; /* AT_HWCAP */
  bool is_wasm;
} kiln_cpu_t;
/* What another architecture has is zero. */
kiln_cpu_t kiln_cpu_detect(void);
/* KILN_CPU_ bits of what the CPU and its system can run. */
uint64_t kiln_cpu_features(const kiln_cpu_t *cpu);
/* "x86-64-v2", of the highest level among the features; never null. */
const char *kiln_cpu_text(uint64_t features);

#ifdef __cplusplus
}
#endif
#endif /* KILN_CPU_H */
