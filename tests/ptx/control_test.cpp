// SPDX-License-Identifier: Apache-2.0
//
// Branches, calls, memory of every space, and communication between threads, in texts by LLVM 22 (llc -march=nvptx64
// -mcpu=sm_80, shortened) and by hand.
#include <bit>
#include <cmath>

#include "Instruction.h"
#include "NumberFormats.h"
#include "generated.h"
#include "support.h"

namespace kiln::ptx {
namespace {

/// A called function with a jump table, constants, and a local array; 77 threads of 96.
TEST(Control, CallsTablesLocalMemory) {
  Device device(generated::calls);
  const int n = 77;
  const std::uint64_t out = device.upload(std::vector<std::int32_t>(n));
  const LaunchResult result = device.run({{3}, {32}, {}}, {out, n});
  ASSERT_TRUE(result) << result.error;
  const auto got = device.download<std::int32_t>(out, n);
  const int table[] = {3, 1, 4, 1, 5};
  for (int i = 0; i < n; ++i) {
    const int x = table[(i & 7) % 5] * i;
    const int expected[] = {x + 10, x * x, x ^ 255, x / 3, 7};
    ASSERT_EQ(got[i], expected[i % 5]) << i;
  }
}

/// A block-wide sum with barriers, whose basic blocks are not in execution order.
TEST(Control, SumsInSharedMemory) {
  for (const int n : {1, 255, 256, 1001}) {
    Device device(generated::sum);
    const std::vector<float> values = smallNumbers(n, 3);
    const std::uint64_t x = device.upload(values), y = device.memory.allocate(4);
    const LaunchResult result = device.run({{1}, {256}, {}}, {x, y, n});
    ASSERT_TRUE(result) << result.error;
    float expected = 0;
    for (const float value : values)
      expected += value;
    EXPECT_EQ(device.download<float>(y, 1)[0], expected);
  }
}

/// Pairs of f16 by LLVM: sums, products, maxima, then f32 roots that are converted to bf16.
TEST(Control, PairsOfHalves) {
  Device device(generated::halves);
  const int n = 45;
  const std::vector<float> values = smallNumbers(2 * n, 5);
  std::vector<std::uint16_t> halves;
  for (const float value : values)
    halves.push_back(toF16(value));
  const std::uint64_t x = device.upload(halves), y = device.memory.allocate(4 * n);
  const LaunchResult result = device.run({{1}, {64}, {}}, {x, y, n});
  ASSERT_TRUE(result) << result.error;
  const auto got = device.download<std::uint16_t>(y, 2 * n);
  for (int i = 0; i < 2 * n; ++i) {
    const float sum = std::fmax(values[i] * (i % 2 ? 0.25F : 1.5F) + values[i], 0.0F);
    ASSERT_EQ(got[i], toBf16(std::sqrt(sum / (i % 2 ? 7.0F : 3.0F)))) << i;
  }
}

/// Each lane has its own trip count, with a branch in the loop; then all lanes execute a shuffle.
TEST(Control, LanesMeetAgain) {
  Device device(kernelOf(R"(
    mov.u32 %r1, 0;
    mov.u32 %r2, 0;
  LOOP:
    setp.ge.u32 %p1, %r1, %r0;
    @%p1 bra DONE;
    and.b32 %r3, %r1, 1;
    setp.eq.u32 %p2, %r3, 0;
    @%p2 bra EVEN;
    add.u32 %r2, %r2, 100;
    bra NEXT;
  EVEN:
    add.u32 %r2, %r2, 1;
  NEXT:
    add.u32 %r1, %r1, 1;
    bra LOOP;
  DONE:
    shfl.sync.idx.b32 %r4, %r2, 30, 31, -1;
    add.u32 %r4, %r4, %r2;
    mad.wide.u32 %rd1, %r0, 4, %rd0;
    st.global.u32 [%rd1], %r4;)"));
  const std::uint64_t out = device.memory.allocate(128);
  const LaunchResult result = device.run({{1}, {32}, {}}, {out});
  ASSERT_TRUE(result) << result.error;
  const auto got = device.download<std::uint32_t>(out, 32);
  const auto of = [](std::uint32_t lane) { return (lane + 1) / 2 + lane / 2 * 100; };
  for (std::uint32_t lane = 0; lane < 32; ++lane)
    ASSERT_EQ(got[lane], of(lane) + of(30)) << lane;
}

/// Runs `body`, which leaves a word in %r4, on a warp whose %r1 is lane * lane. Returns the words.
std::vector<std::uint32_t> acrossLanes(const std::string &body) {
  Device device(kernelOf("mul.lo.u32 %r1, %r0, %r0;\nsetp.gt.u32 %p1, %r0, 20;\n" + body +
                         "\nmad.wide.u32 %rd1, %r0, 4, %rd0;\nst.global.u32 [%rd1], %r4;"));
  const std::uint64_t out = device.memory.allocate(128);
  const LaunchResult result = device.run({{1}, {32}, {}}, {out});
  EXPECT_TRUE(result) << body << ": " << result.error;
  return device.download<std::uint32_t>(out, 32);
}

TEST(Lanes, Shuffles) {
  const auto up = acrossLanes("shfl.sync.up.b32 %r4, %r1, 3, 0, -1;");
  const auto down = acrossLanes("shfl.sync.down.b32 %r4, %r1, 5, 31, -1;");
  const auto butterfly = acrossLanes("shfl.sync.bfly.b32 %r4, %r1, 9, 31, 0xffffffff;");
  // Segments of eight lanes: the segment mask is 0x18.
  const auto segment = acrossLanes("shfl.sync.idx.b32 %r4|%p2, %r1, 6, 0x181f, -1;");
  const auto inRange = acrossLanes("shfl.sync.down.b32 %r5|%p2, %r1, 2, 0x1807, -1;\nselp.u32 %r4, 1, 0, %p2;");
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    const auto square = [](std::uint32_t x) { return x * x; };
    EXPECT_EQ(up[lane], square(lane >= 3 ? lane - 3 : lane));
    EXPECT_EQ(down[lane], square(lane + 5 < 32 ? lane + 5 : lane));
    EXPECT_EQ(butterfly[lane], square(lane ^ 9));
    EXPECT_EQ(segment[lane], square(lane / 8 * 8 + 6));
    EXPECT_EQ(inRange[lane], lane % 8 + 2 < 8 ? 1U : 0U);
  }
}

TEST(Lanes, Votes) {
  const auto ballot = acrossLanes("vote.sync.ballot.b32 %r4, %p1, -1;");
  const auto any = acrossLanes("vote.sync.any.pred %p2, %p1, -1;\nselp.u32 %r4, 1, 0, %p2;");
  const auto all = acrossLanes("vote.sync.all.pred %p2, %p1, -1;\nselp.u32 %r4, 1, 0, %p2;");
  const auto match = acrossLanes("and.b32 %r2, %r0, 3;\nmatch.any.sync.b32 %r4, %r2, -1;");
  const auto sum = acrossLanes("redux.sync.add.u32 %r4, %r1, -1;");
  const auto active = acrossLanes("activemask.b32 %r4;");
  const auto masks = acrossLanes("mov.u32 %r4, %lanemask_lt;");
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(ballot[lane], 0xffe00000U);
    EXPECT_EQ(any[lane], 1U);
    EXPECT_EQ(all[lane], 0U);
    EXPECT_EQ(match[lane], 0x11111111U << lane % 4);
    EXPECT_EQ(sum[lane], 31U * 32 * 63 / 6);
    EXPECT_EQ(active[lane], allLanes);
    EXPECT_EQ(masks[lane], (1U << lane) - 1);
  }
}

/// bar.warp.sync of lanes that are at two different ones.
TEST(Lanes, WarpBarriersMeet) {
  const auto got = acrossLanes(R"(
    .shared .align 4 .b8 tile[128];
    mov.u64 %rd2, tile;
    mad.wide.u32 %rd3, %r0, 4, %rd2;
    @%p1 bra HIGH;
    st.shared.u32 [%rd3], 1;
    bar.warp.sync -1;
    bra BOTH;
  HIGH:
    st.shared.u32 [%rd3], 2;
    bar.warp.sync -1;
  BOTH:
    xor.b32 %r2, %r0, 31;
    mad.wide.u32 %rd3, %r2, 4, %rd2;
    ld.shared.u32 %r4, [%rd3];)");
  for (std::uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(got[lane], 31 - lane > 20 ? 2U : 1U);
}

TEST(Control, AtomicsOfAllBlocks) {
  Device device(kernelOf(R"(
    and.b32 %r1, %r0, 3;
    mad.wide.u32 %rd1, %r1, 4, %rd0;
    atom.global.add.u32 %r2, [%rd1], 1;
    red.global.max.u32 [%rd0+16], %r0;
    mov.f32 %f1, 0f3E800000;
    red.global.add.f32 [%rd0+20], %f1;
  AGAIN:
    ld.global.u32 %r5, [%rd0+24];
    add.u32 %r6, %r5, 3;
    atom.global.cas.b32 %r7, [%rd0+24], %r5, %r6;
    setp.ne.u32 %p1, %r5, %r7;
    @%p1 bra AGAIN;)"));
  const std::uint64_t out = device.upload(std::vector<std::uint32_t>(7));
  const LaunchResult result = device.run({{5}, {37}, {}}, {out});
  ASSERT_TRUE(result) << result.error;
  const auto got = device.download<std::uint32_t>(out, 7);
  const std::vector<std::uint32_t> expected = {50, 45, 45, 45, 36, std::bit_cast<std::uint32_t>(5 * 37 / 4.0F), 555};
  EXPECT_EQ(got, expected);
}

/// A producer warp and a consumer warp with two named barriers, next to a warp that takes no part.
TEST(Control, NamedBarriers) {
  Device device(kernelOf(R"(
    .shared .align 4 .b8 tile[128];
    and.b32 %r1, %r0, 31;
    shr.u32 %r2, %r0, 5;
    mov.u64 %rd2, tile;
    mad.wide.u32 %rd3, %r1, 4, %rd2;
    mov.u32 %r5, 0;
    mov.u32 %r6, 0;
    setp.eq.u32 %p1, %r2, 1;
    setp.eq.u32 %p2, %r2, 2;
    @%p2 exit;
    @%p1 bra CONSUME;
  PRODUCE:
    mad.lo.u32 %r7, %r1, 10, %r5;
    st.shared.u32 [%rd3], %r7;
    bar.arrive 1, 64;
    bar.sync 2, 64;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p3, %r5, 3;
    @%p3 bra PRODUCE;
    exit;
  CONSUME:
    bar.sync 1, 64;
    xor.b32 %r8, %r1, 1;
    mad.wide.u32 %rd4, %r8, 4, %rd2;
    ld.shared.u32 %r9, [%rd4];
    add.u32 %r6, %r6, %r9;
    bar.arrive 2, 64;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p3, %r5, 3;
    @%p3 bra CONSUME;
    mad.wide.u32 %rd1, %r1, 4, %rd0;
    st.global.u32 [%rd1], %r6;)"));
  const std::uint64_t out = device.memory.allocate(128);
  const LaunchResult result = device.run({{1}, {96}, {}}, {out});
  ASSERT_TRUE(result) << result.error;
  const auto got = device.download<std::uint32_t>(out, 32);
  for (std::uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(got[lane], 30 * (lane ^ 1) + 3);
}

/// Halide's kernels declare no shared variable and use addresses from zero.
TEST(Control, SharedMemoryWithoutVariables) {
  Device device(kernelOf("mul.wide.u32 %rd1, %r0, 4;\nst.shared.u32 [%rd1], %r0;\nbar.sync 0;\n"
                         "ld.shared.u32 %r1, [8];\nst.global.u32 [%rd0], %r1;"));
  const std::uint64_t out = device.memory.allocate(4);
  const LaunchResult result = device.run({{1}, {48}, {}, 192}, {out});
  ASSERT_TRUE(result) << result.error;
  EXPECT_EQ(device.download<std::uint32_t>(out, 1)[0], 2U);
}

TEST(Module, SaysWhatAnEntryTakes) {
  std::string error;
  const auto module = Module::parse(".version 7.0\n.target sm_80\n.address_size 64\n"
                                    ".visible .entry f(.param .u32 a, .param .u64 .ptr .global .align 16 b,\n"
                                    " .param .align 64 .b8 c[128], .param .u8 d) .maxntid 128, 2, 1 { ret; }\n"
                                    ".visible .entry g() { .shared .align 16 .b8 s[40]; ret; }\n",
                                    error);
  ASSERT_TRUE(module) << error;
  ASSERT_EQ(module->entries().size(), 2U);
  const Entry &f = *module->find("f");
  EXPECT_EQ(f.parameters[1].offset, 8U);
  EXPECT_EQ(f.parameters[2].offset, 64U);
  EXPECT_EQ(f.parameters[3].offset, 192U);
  EXPECT_EQ(f.parameterBytes, 193U);
  EXPECT_EQ(f.maxThreads[0] * f.maxThreads[1], 256U);
  EXPECT_EQ(module->find("g")->staticShared, 40U);
  EXPECT_EQ(module->target(), "sm_80");
  EXPECT_FALSE(module->find("h"));
}

TEST(Module, VariablesAreLoaded) {
  Device device(
      kernelOf("ld.global.f32 %f1, [scale+4];\nst.global.f32 [%rd0], %f1;\nmov.u64 %rd1, counter;\n"
               "ld.global.u32 %r1, [%rd1];\nadd.u32 %r1, %r1, 1;\nst.global.u32 [counter], %r1;",
               ".global .align 4 .f32 scale[2] = {0f3F800000, 0f40490FDB};\n.visible .global .u32 counter;\n"));
  const std::uint64_t out = device.memory.allocate(4);
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(device.run({{1}, {1}, {}}, {out}));
  EXPECT_EQ(device.download<std::uint32_t>(out, 1)[0], 0x40490FDBU);
  EXPECT_EQ(device.download<std::uint32_t>(*device.loaded->address("counter"), 1)[0], 3U);
}

} // namespace
} // namespace kiln::ptx
