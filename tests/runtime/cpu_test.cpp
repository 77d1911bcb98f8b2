// SPDX-License-Identifier: Apache-2.0
#include "support.h"

#include <gtest/gtest.h>

namespace {

// Every feature of x86-64-v4, and a system that saves all registers.
constexpr kiln_cpu_t FullCpu = {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xE7, 0, 0, 0, false};

/// Returns the features of this level and the levels below; 2 is the lowest.
constexpr uint64_t UpTo(int Level) {
  static_assert(KILN_CPU_X86_64_V2 == 1 && KILN_CPU_X86_64_V3 == 2 && KILN_CPU_X86_64_V4 == 4);
  return (uint64_t{1} << (Level - 1)) - 1;
}

TEST(Cpu, LevelsFromFeatures) {
  const struct {
    const char *What;
    uint32_t kiln_cpu_t::*Word;
    int Bit;
    uint64_t Features;
  } cases[] = {
      {"sse3", &kiln_cpu_t::leaf1_ecx, 0, 0},
      {"ssse3", &kiln_cpu_t::leaf1_ecx, 9, 0},
      {"cmpxchg16b", &kiln_cpu_t::leaf1_ecx, 13, 0},
      {"sse4.1", &kiln_cpu_t::leaf1_ecx, 19, 0},
      {"sse4.2", &kiln_cpu_t::leaf1_ecx, 20, 0},
      {"popcnt", &kiln_cpu_t::leaf1_ecx, 23, 0},
      {"lahf", &kiln_cpu_t::extended1_ecx, 0, 0},
      {"fma", &kiln_cpu_t::leaf1_ecx, 12, UpTo(2)},
      {"movbe", &kiln_cpu_t::leaf1_ecx, 22, UpTo(2)},
      {"osxsave", &kiln_cpu_t::leaf1_ecx, 27, UpTo(2)},
      {"avx", &kiln_cpu_t::leaf1_ecx, 28, UpTo(2)},
      {"f16c", &kiln_cpu_t::leaf1_ecx, 29, UpTo(2)},
      {"bmi1", &kiln_cpu_t::leaf7_ebx, 3, UpTo(2)},
      {"avx2", &kiln_cpu_t::leaf7_ebx, 5, UpTo(2)},
      {"bmi2", &kiln_cpu_t::leaf7_ebx, 8, UpTo(2)},
      {"lzcnt", &kiln_cpu_t::extended1_ecx, 5, UpTo(2)},
      {"avx512f", &kiln_cpu_t::leaf7_ebx, 16, UpTo(3)},
      {"avx512dq", &kiln_cpu_t::leaf7_ebx, 17, UpTo(3)},
      {"avx512cd", &kiln_cpu_t::leaf7_ebx, 28, UpTo(3)},
      {"avx512bw", &kiln_cpu_t::leaf7_ebx, 30, UpTo(3)},
      {"avx512vl", &kiln_cpu_t::leaf7_ebx, 31, UpTo(3)},
      {"sha, which no level needs", &kiln_cpu_t::leaf7_ebx, 29, UpTo(4)},
  };
  EXPECT_EQ(kiln_cpu_features(&FullCpu), UpTo(4));
  for (const auto &test : cases) {
    kiln_cpu_t cpu = FullCpu;
    cpu.*test.Word &= ~(1u << test.Bit);
    EXPECT_EQ(kiln_cpu_features(&cpu), test.Features) << "without " << test.What;
  }
}

// A CPU may have AVX under a system or hypervisor that does not save its registers.
TEST(Cpu, LevelsFromSavedState) {
  const struct {
    uint64_t State;
    uint64_t Features;
  } cases[] = {{0x00, UpTo(2)}, {0x03, UpTo(2)}, {0x07, UpTo(3)}, {0x67, UpTo(3)}, {0xE7, UpTo(4)}, {0x2E7, UpTo(4)}};
  for (const auto &test : cases) {
    kiln_cpu_t cpu = FullCpu;
    cpu.saved_state = test.State;
    EXPECT_EQ(kiln_cpu_features(&cpu), test.Features) << test.State;
  }
}

// VNNI is a separate bit, which no level below v4 has.
TEST(Cpu, ProductsOfInt8) {
  kiln_cpu_t cpu = FullCpu;
  cpu.leaf7_ecx = 1u << 11;
  EXPECT_EQ(kiln_cpu_features(&cpu), UpTo(4) | KILN_CPU_X86_64_VNNI);
  EXPECT_STREQ(kiln_cpu_text(UpTo(4) | KILN_CPU_X86_64_VNNI), "x86-64-v4-vnni");
  cpu.saved_state = 0x07;
  EXPECT_EQ(kiln_cpu_features(&cpu), UpTo(3));
}

// Values of AT_HWCAP: ASIMD and ASIMDDP of aarch64; the extension letters of riscv64, rv64imafdc and v.
TEST(Cpu, OtherArchitectures) {
  const struct {
    uint64_t Arm, Riscv;
    bool IsWasm;
    uint64_t Features;
    const char *Text;
  } cases[] = {{1, 0, false, 0, "an older CPU"},
               {3, 0, false, KILN_CPU_AARCH64, "aarch64"},
               {0x100003, 0, false, KILN_CPU_AARCH64 | KILN_CPU_AARCH64_DOTPROD, "aarch64-dotprod"},
               {0x100001, 0, false, 0, "an older CPU"},
               {0, 0x112D, false, KILN_CPU_RISCV64, "riscv64"},
               {0, 0x1125, false, 0, "an older CPU"},
               {0, 0x20112D, false, KILN_CPU_RISCV64 | KILN_CPU_RISCV64_V, "riscv64-v"},
               {0, 0x200105, false, 0, "an older CPU"},
               {0, 0, true, KILN_CPU_WASM32, "wasm32"}};
  for (const auto &test : cases) {
    kiln_cpu_t cpu = {};
    cpu.arm_capabilities = test.Arm;
    cpu.riscv_capabilities = test.Riscv;
    cpu.is_wasm = test.IsWasm;
    EXPECT_EQ(kiln_cpu_features(&cpu), test.Features) << test.Arm << " " << test.Riscv;
    EXPECT_STREQ(kiln_cpu_text(test.Features), test.Text);
  }
}

#if defined(__x86_64__)
TEST(Cpu, DetectionAgreesWithTheCompiler) {
  const kiln_cpu_t cpu = kiln_cpu_detect();
  const uint64_t vnni = __builtin_cpu_supports("avx512vnni") ? KILN_CPU_X86_64_VNNI : 0;
  uint64_t expected = __builtin_cpu_supports("x86-64-v4")   ? UpTo(4) | vnni
                      : __builtin_cpu_supports("x86-64-v3") ? UpTo(3)
                      : __builtin_cpu_supports("x86-64-v2") ? UpTo(2)
                                                            : 0;
  EXPECT_EQ(kiln_cpu_features(&cpu), expected);
}
#endif

class CpuChoice : public testing::Test {
protected:
  kiln_variant_t Variants[3] = {kiln_test::hostVariant("x86-64-v4", UpTo(4), nullptr, 0, nullptr),
                                kiln_test::hostVariant("x86-64-v3", UpTo(3), nullptr, 0, nullptr),
                                kiln_test::hostVariant("x86-64-v2", UpTo(2), nullptr, 0, nullptr)};
  kiln_descriptor_t Descriptor = {KILN_ABI_VERSION, 0, 0, 3, "choice", nullptr, nullptr, Variants, nullptr, 0};
  kiln_cpu_t Cpu = FullCpu;
  kiln_options_t Options = {};
  kiln_model_t *Model = nullptr;
  kiln_error_t Error = {};

  kiln_status_t create() { return kiln_model_create(&Descriptor, &Cpu, &Options, &Model, &Error); }
};

TEST_F(CpuChoice, TakesTheFirstVariantThatRuns) {
  const struct {
    uint64_t State;
    int Variant;
  } cases[] = {{0xE7, 0}, {0x07, 1}, {0x03, 2}};
  for (const auto &test : cases) {
    Cpu.saved_state = test.State;
    ASSERT_EQ(create(), KILN_OK) << Error.message;
    EXPECT_EQ(Model->variant, &Variants[test.Variant]);
    kiln_destroy(Model);
  }
}

TEST_F(CpuChoice, LeavesOutADevicesMemory) {
  Variants[0].memory_space = KILN_MEMORY_DEVICE;
  ASSERT_EQ(create(), KILN_OK) << Error.message;
  EXPECT_EQ(Model->variant, &Variants[1]);
  kiln_destroy(Model);
}

// The required features are a set: a variant is skipped if the CPU lacks any of them, whichever one that is.
TEST_F(CpuChoice, FeaturesAreASet) {
  Variants[0].features = uint64_t{1} << 40;
  Variants[1].features = KILN_CPU_X86_64_V4;
  Cpu.saved_state = 0x07;
  ASSERT_EQ(create(), KILN_OK) << Error.message;
  EXPECT_EQ(Model->variant, &Variants[2]);
  kiln_destroy(Model);
}

// A device without a variant is refused, whatever the CPU can run.
TEST_F(CpuChoice, RefusesADeviceThatNoVariantIsFor) {
  Options.device = KILN_CPU;
  ASSERT_EQ(create(), KILN_OK) << Error.message;
  kiln_destroy(Model);
  Options.device = KILN_CUDA;
  EXPECT_EQ(create(), KILN_NO_DEVICE);
  EXPECT_STREQ(Error.message, "model \"choice\": not for a GPU; expected a target cuda");
  EXPECT_EQ(Model, nullptr);
}

TEST_F(CpuChoice, RefusesWhenNoneRuns) {
  Descriptor.variant_count = 2;
  Cpu.saved_state = 0;
  EXPECT_EQ(create(), KILN_UNSUPPORTED_CPU);
  EXPECT_STREQ(Error.message, "model \"choice\": unsupported CPU; expected level x86-64-v3, got x86-64-v2");
  EXPECT_EQ(Model, nullptr);
  Cpu = {};
  EXPECT_EQ(create(), KILN_UNSUPPORTED_CPU);
  EXPECT_STREQ(Error.message, "model \"choice\": unsupported CPU; expected level x86-64-v3, got an older CPU");
}

} // namespace
