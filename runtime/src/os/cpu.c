// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Detects CPU features: the levels of the x86-64 psABI, from CPUID and, for registers that the system must save,
 * XGETBV; on Arm and RISC-V from the system. It does not use __builtin_cpu_supports, which would add a static
 * constructor. */
#include "os/cpu.h"
#include "core/model.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif (defined(__aarch64__) || defined(__riscv)) && defined(__linux__)
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#elif defined(__aarch64__) && defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#endif

/* CPUID leaf 1, ecx */
enum {
  LEAF1_SSE3 = 1 << 0,
  LEAF1_SSSE3 = 1 << 9,
  LEAF1_FMA = 1 << 12,
  LEAF1_CMPXCHG16B = 1 << 13,
  LEAF1_SSE4_1 = 1 << 19,
  LEAF1_SSE4_2 = 1 << 20,
  LEAF1_MOVBE = 1 << 22,
  LEAF1_POPCNT = 1 << 23,
  LEAF1_OSXSAVE = 1 << 27,
  LEAF1_AVX = 1 << 28,
  LEAF1_F16C = 1 << 29,
  LEAF1_V2 = LEAF1_SSE3 | LEAF1_SSSE3 | LEAF1_CMPXCHG16B | LEAF1_SSE4_1 | LEAF1_SSE4_2 | LEAF1_POPCNT,
  LEAF1_V3 = LEAF1_FMA | LEAF1_MOVBE | LEAF1_OSXSAVE | LEAF1_AVX | LEAF1_F16C,
};
/* CPUID leaf 7.0, ebx unless stated otherwise */
#define LEAF7_BMI1 (1u << 3)
#define LEAF7_AVX2 (1u << 5)
#define LEAF7_BMI2 (1u << 8)
#define LEAF7_AVX512F (1u << 16)
#define LEAF7_AVX512DQ (1u << 17)
#define LEAF7_AVX512CD (1u << 28)
#define LEAF7_AVX512BW (1u << 30)
#define LEAF7_AVX512VL (1u << 31)
#define LEAF7_VNNI (1u << 11) /* ecx */
#define LEAF7_V3 (LEAF7_BMI1 | LEAF7_AVX2 | LEAF7_BMI2)
#define LEAF7_V4 (LEAF7_AVX512F | LEAF7_AVX512DQ | LEAF7_AVX512CD | LEAF7_AVX512BW | LEAF7_AVX512VL)
/* CPUID leaf 0x80000001, ecx */
enum { EXTENDED1_LAHF = 1 << 0, EXTENDED1_LZCNT = 1 << 5 };
/* XCR0 */
enum { STATE_AVX = 0x06, STATE_AVX512 = 0xE6 };
/* AT_HWCAP of aarch64 */
enum { ARM_ASIMD = 1 << 1, ARM_ASIMDDP = 1 << 20 };
/* PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE of <winnt.h> */
enum { WINDOWS_ARM_DOT_PRODUCTS = 43 };
/* AT_HWCAP of riscv64: one bit per letter */
enum {
  RISCV_GC =
      1 << ('i' - 'a') | 1 << ('m' - 'a') | 1 << ('a' - 'a') | 1 << ('f' - 'a') | 1 << ('d' - 'a') | 1 << ('c' - 'a'),
  RISCV_V = 1 << ('v' - 'a'),
};

static bool has_all(uint64_t found, uint64_t wanted) { return (found & wanted) == wanted; }

kiln_cpu_t kiln_cpu_detect(void) {
  kiln_cpu_t cpu = {0};
#if defined(__x86_64__)
  uint32_t eax, ebx, ecx, edx;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx))
    cpu.leaf1_ecx = ecx;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx))
    cpu.leaf7_ebx = ebx, cpu.leaf7_ecx = ecx;
  if (__get_cpuid(0x80000001u, &eax, &ebx, &ecx, &edx))
    cpu.extended1_ecx = ecx;
  if (has_all(cpu.leaf1_ecx, LEAF1_OSXSAVE)) {
    __asm__ volatile("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
    cpu.saved_state = (uint64_t)edx << 32 | eax;
  }
#elif defined(__aarch64__) && defined(__linux__)
  cpu.arm_capabilities = getauxval(AT_HWCAP);
#elif defined(__aarch64__) && defined(__APPLE__)
  int has_dot_products = 0; /* Macs have them, iPhones since the A13; systems before iOS 15 do not report them */
  size_t bytes = sizeof has_dot_products;
  sysctlbyname("hw.optional.arm.FEAT_DotProd", &has_dot_products, &bytes, NULL, 0);
  cpu.arm_capabilities = ARM_ASIMD | (has_dot_products ? ARM_ASIMDDP : 0);
#elif defined(__aarch64__) && defined(_WIN32)
  cpu.arm_capabilities = ARM_ASIMD | (IsProcessorFeaturePresent(WINDOWS_ARM_DOT_PRODUCTS) ? ARM_ASIMDDP : 0);
#elif defined(__riscv) && defined(__linux__)
  cpu.riscv_capabilities = getauxval(AT_HWCAP);
#elif defined(__wasm__)
  cpu.is_wasm = true;
#endif
  return cpu;
}

uint64_t kiln_cpu_features(const kiln_cpu_t *cpu) {
  uint64_t features = cpu->is_wasm ? KILN_CPU_WASM32 : 0;
  if (cpu->arm_capabilities & ARM_ASIMD)
    features |= KILN_CPU_AARCH64 | (cpu->arm_capabilities & ARM_ASIMDDP ? KILN_CPU_AARCH64_DOTPROD : 0);
  if (has_all(cpu->riscv_capabilities, RISCV_GC))
    features |= KILN_CPU_RISCV64 | (cpu->riscv_capabilities & RISCV_V ? KILN_CPU_RISCV64_V : 0);
  if (!has_all(cpu->leaf1_ecx, LEAF1_V2) || !has_all(cpu->extended1_ecx, EXTENDED1_LAHF))
    return features;
  features |= KILN_CPU_X86_64_V2;
  if (!has_all(cpu->leaf1_ecx, LEAF1_V3) || !has_all(cpu->leaf7_ebx, LEAF7_V3) ||
      !has_all(cpu->extended1_ecx, EXTENDED1_LZCNT) || !has_all(cpu->saved_state, STATE_AVX))
    return features;
  features |= KILN_CPU_X86_64_V3;
  if (has_all(cpu->leaf7_ebx, LEAF7_V4) && has_all(cpu->saved_state, STATE_AVX512))
    features |= KILN_CPU_X86_64_V4;
  if (features & KILN_CPU_X86_64_V4 && has_all(cpu->leaf7_ecx, LEAF7_VNNI))
    features |= KILN_CPU_X86_64_VNNI;
  return features;
}

const char *kiln_cpu_text(uint64_t features) {
  return features & KILN_CPU_X86_64_VNNI       ? "x86-64-v4-vnni"
         : features & KILN_CPU_X86_64_V4       ? "x86-64-v4"
         : features & KILN_CPU_X86_64_V3       ? "x86-64-v3"
         : features & KILN_CPU_X86_64_V2       ? "x86-64-v2"
         : features & KILN_CPU_AARCH64_DOTPROD ? "aarch64-dotprod"
         : features & KILN_CPU_AARCH64         ? "aarch64"
         : features & KILN_CPU_RISCV64_V       ? "riscv64-v"
         : features & KILN_CPU_RISCV64         ? "riscv64"
         : features & KILN_CPU_WASM32          ? "wasm32"
                                               : "an older CPU";
}
