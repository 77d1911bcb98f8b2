// SPDX-License-Identifier: Apache-2.0
//
// Matrix instructions of sm_80: mma.sync compared with a loop, ldmatrix and stmatrix, cp.async and accesses to its
// bytes.
#include <fmt/format.h>

#include "NumberFormats.h"
#include "support.h"

namespace kiln::ptx {
namespace {

#define EXPECT_WORDS(error, words) EXPECT_NE((error).find(words), std::string::npos) << (error)

std::string list(const char *prefix, unsigned count) {
  std::string text = "{";
  for (unsigned i = 0; i < count; ++i)
    text += fmt::format("{}%{}{}", i ? ", " : "", prefix, i);
  return text + "}";
}

/// D = A B^T + C by one mma: A of 16 rows at %rd1, B of 8 rows at %rd2, rows of 16 or 32 bytes; C and D of 16 x 8 words
/// at %rd3. A register has four bytes of a row, whatever the type is.
std::string mmaKernel(const std::string &shape, unsigned rowBytes) {
  const unsigned na = rowBytes / 8, nb = rowBytes / 16;
  std::string text =
      ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c) {\n.reg .b32 %r<16>, %a<4>, %b<2>, "
      "%c<4>;\n.reg .b64 %rd<16>;\n"
      "ld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\nld.param.u64 %rd3, [c];\nmov.u32 %r0, %laneid;\n"
      "shr.u32 %r1, %r0, 2;\nand.b32 %r2, %r0, 3;\nshl.b32 %r2, %r2, 2;\n";
  text += fmt::format("mad.lo.u32 %r3, %r1, {}, %r2;\ncvt.u64.u32 %rd4, %r3;\nadd.u64 %rd1, %rd1, %rd4;\n"
                      "add.u64 %rd2, %rd2, %rd4;\nmad.lo.u32 %r4, %r1, 32, %r2;\nadd.u32 %r4, %r4, %r2;\n"
                      "cvt.u64.u32 %rd5, %r4;\nadd.u64 %rd3, %rd3, %rd5;\n",
                      rowBytes);
  for (unsigned r = 0; r < na; ++r)
    text += fmt::format("ld.global.b32 %a{}, [%rd1+{}];\n", r, r % 2 * 8 * rowBytes + r / 2 * 16);
  for (unsigned r = 0; r < nb; ++r)
    text += fmt::format("ld.global.b32 %b{}, [%rd2+{}];\n", r, r * 16);
  text += "ld.global.v2.b32 {%c0, %c1}, [%rd3];\nld.global.v2.b32 {%c2, %c3}, [%rd3+256];\n";
  text += fmt::format("mma.sync.aligned.{} {}, {}, {}, {};\n", shape, list("c", 4), list("a", na), list("b", nb),
                      list("c", 4));
  return text + "st.global.v2.b32 [%rd3], {%c0, %c1};\nst.global.v2.b32 [%rd3+256], {%c2, %c3};\nret;\n}\n";
}

/// T is the element type of A and B; `encode` converts a small number to it.
template <class T, class Sum, class Encode> void checkMma(const std::string &shape, unsigned rowBytes, Encode encode) {
  const unsigned k = rowBytes / sizeof(T);
  const std::vector<float> a = smallNumbers(16 * k, 1), b = smallNumbers(8 * k, 2), c = smallNumbers(16 * 8, 3);
  // Integers are numbers of quarters.
  const float unit = std::is_integral_v<Sum> ? 4 : 1;
  std::vector<T> ea, eb;
  for (const float value : a)
    ea.push_back(encode(value * unit));
  for (const float value : b)
    eb.push_back(encode(value * unit));
  std::vector<Sum> ec;
  for (const float value : c)
    ec.push_back(static_cast<Sum>(value * unit));
  Device device(mmaKernel(shape, rowBytes));
  const std::uint64_t pa = device.upload(ea), pb = device.upload(eb), pc = device.upload(ec);
  const LaunchResult result = device.run({{1}, {32}, {}}, {pa, pb, pc});
  ASSERT_TRUE(result) << shape << result.error;
  const auto got = device.download<Sum>(pc, 16 * 8);
  for (unsigned i = 0; i < 16; ++i)
    for (unsigned j = 0; j < 8; ++j) {
      float sum = static_cast<float>(ec[i * 8 + j]);
      for (unsigned x = 0; x < k; ++x)
        sum += a[i * k + x] * unit * b[j * k + x] * unit;
      ASSERT_EQ(static_cast<float>(got[i * 8 + j]), sum) << shape << " " << i << " " << j;
    }
}

TEST(Matrices, Products) {
  const auto half = [](float x) { return toF16(x); };
  const auto brain = [](float x) { return toBf16(x); };
  const auto plain = [](float x) { return x; };
  const auto byte = [](float x) { return static_cast<std::int8_t>(x); };
  checkMma<std::uint16_t, float>("m16n8k16.row.col.f32.f16.f16.f32", 32, half);
  checkMma<std::uint16_t, float>("m16n8k8.row.col.f32.f16.f16.f32", 16, half);
  checkMma<std::uint16_t, float>("m16n8k16.row.col.f32.bf16.bf16.f32", 32, brain);
  checkMma<std::uint16_t, float>("m16n8k8.row.col.f32.bf16.bf16.f32", 16, brain);
  checkMma<float, float>("m16n8k8.row.col.f32.tf32.tf32.f32", 32, plain);
  checkMma<float, float>("m16n8k4.row.col.f32.tf32.tf32.f32", 16, plain);
  checkMma<std::int8_t, std::int32_t>("m16n8k32.row.col.s32.s8.s8.s32", 32, byte);
  checkMma<std::int8_t, std::int32_t>("m16n8k16.row.col.s32.s8.s8.s32", 16, byte);
  EXPECT_WORDS(refusalOf(mmaKernel("m16n8k16.row.col.f32.f16.bf16.f32", 32)), "this shape and types");
}

/// f16 sums: 16 x 8 in two registers, of A and B loaded by ldmatrix, with B stored as [k][n] and transposed by the
/// load.
TEST(Matrices, HalfSumsOfTransposedTiles) {
  Device device(R"(
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 d) {
  .shared .align 16 .b8 ta[512];
  .shared .align 16 .b8 tb[256];
  .reg .b32 %r<32>;
  .reg .b64 %rd<16>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
  ld.param.u64 %rd3, [d];
  mov.u32 %r0, %laneid;
  mad.wide.u32 %rd1, %r0, 16, %rd1;
  mov.u32 %r1, ta;
  mad.lo.u32 %r2, %r0, 16, %r1;
  cp.async.cg.shared.global [%r2], [%rd1], 16;
  mad.wide.u32 %rd2, %r0, 8, %rd2;
  mov.u32 %r3, tb;
  mad.lo.u32 %r4, %r0, 8, %r3;
  cp.async.ca.shared.global [%r4], [%rd2], 8;
  cp.async.wait_all;
  bar.warp.sync -1;
  and.b32 %r5, %r0, 15;
  shr.u32 %r6, %r0, 4;
  shl.b32 %r7, %r5, 5;
  mad.lo.u32 %r7, %r6, 16, %r7;
  add.u32 %r7, %r7, %r1;
  ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r8, %r9, %r10, %r11}, [%r7];
  mad.lo.u32 %r12, %r5, 16, %r3;
  ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r13, %r14}, [%r12];
  mov.b32 %r15, 0;
  mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r16, %r17}, {%r8, %r9, %r10, %r11}, {%r13, %r14}, {%r15, %r15};
  bar.warp.sync -1;
  mad.lo.u32 %r18, %r5, 16, %r1;
  stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r18], {%r16, %r17};
  bar.warp.sync -1;
  mad.lo.u32 %r19, %r0, 8, %r1;
  ld.shared.v2.b32 {%r20, %r21}, [%r19];
  mad.wide.u32 %rd3, %r0, 8, %rd3;
  st.global.v2.b32 [%rd3], {%r20, %r21};
  ret;
})");
  const std::vector<float> a = smallNumbers(16 * 16, 4), b = smallNumbers(16 * 8, 5);
  std::vector<std::uint16_t> ea, eb;
  for (const float value : a)
    ea.push_back(toF16(value));
  for (const float value : b)
    eb.push_back(toF16(value));
  const std::uint64_t pa = device.upload(ea), pb = device.upload(eb), pd = device.memory.allocate(256);
  const LaunchResult result = device.run({{1}, {32}, {}}, {pa, pb, pd});
  ASSERT_TRUE(result) << result.error;
  const auto got = device.download<std::uint16_t>(pd, 16 * 8);
  for (unsigned i = 0; i < 16; ++i)
    for (unsigned j = 0; j < 8; ++j) {
      float sum = 0;
      for (unsigned x = 0; x < 16; ++x)
        sum += a[i * 16 + x] * b[x * 8 + j];
      ASSERT_EQ(got[i * 8 + j], toF16(sum)) << i << " " << j;
    }
}

/// Runs the body with each lane's addresses of 16 bytes in %rd1 (global) and %r1 (shared).
std::string errorOf(const std::string &body, unsigned threads = 32) {
  Device device(
      kernelOf("mad.wide.u32 %rd1, %r0, 16, %rd0;\nmov.u32 %r2, smem;\nmad.lo.u32 %r1, %r0, 16, %r2;\n" + body,
               ".extern .shared .align 16 .b8 smem[];\n"));
  const std::uint64_t buffer = device.upload(std::vector<std::uint32_t>(256, 7));
  return device.run({{1}, {threads}, {}, 1024}, {buffer}).error;
}

TEST(CopyAsync, BringsBytesAndZeros) {
  EXPECT_EQ(errorOf(R"(
    mov.u32 %r3, 4;
    cp.async.ca.shared.global [%r1], [%rd1+16], 16, %r3;
    cp.async.commit_group;
    cp.async.wait_group 0;
    ld.shared.v2.u32 {%r4, %r5}, [%r1];
    setp.ne.u32 %p1, %r4, 7;
    @%p1 trap;
    setp.ne.u32 %p1, %r5, 0;
    @%p1 trap;)"),
            "");
  // A size of zero reads nothing: the address may be invalid.
  EXPECT_EQ(errorOf("mov.u32 %r3, 0;\nmov.u64 %rd2, 0;\ncp.async.cg.shared.global [%r1], [%rd2], 16, %r3;\n"
                    "cp.async.wait_all;\nld.shared.u32 %r4, [%r1];"),
            "");
}

TEST(CopyAsync, BytesAreNotThereBeforeTheWait) {
  const std::string copy = "cp.async.cg.shared.global [%r1], [%rd1], 16;\n";
  EXPECT_WORDS(errorOf(copy + "cp.async.commit_group;\nld.shared.u32 %r4, [%r1];"),
               "touches shared byte 1024, which cp.async of line 16 writes and has not been waited for");
  // The wait leaves the allowed group pending.
  EXPECT_WORDS(errorOf(copy + "cp.async.commit_group;\ncp.async.wait_group 1;\nst.shared.u32 [%r1], 0;"),
               "touches shared");
  // The copy's group is older than the one that may stay pending.
  EXPECT_EQ(errorOf(copy + "cp.async.commit_group;\ncp.async.commit_group;\ncp.async.wait_group 1;\n"
                           "ld.shared.u32 %r4, [%r1];"),
            "");
  // A copy that was not committed is not waited for.
  EXPECT_WORDS(errorOf(copy + "cp.async.wait_group 0;\nld.shared.u32 %r4, [%r1];"), "touches shared");
}

TEST(CopyAsync, OtherWarpsNeedABarrier) {
  const std::string copy = "cp.async.cg.shared.global [%r1], [%rd1], 16;\ncp.async.wait_all;\n";
  const std::string read = "xor.b32 %r1, %r1, 512;\nld.shared.u32 %r4, [%r1];";
  EXPECT_EQ(errorOf(copy + "bar.sync 0;\n" + read, 64), "");
  EXPECT_WORDS(errorOf("setp.gt.u32 %p1, %r0, 31;\n@%p1 bra L;\n" + copy + "exit;\nL:\n" + read, 64),
               "with no barrier between");
  // A copy over bytes that other warps have accessed needs a barrier, too.
  EXPECT_WORDS(
      errorOf("st.shared.u32 [%r1], 0;\nbar.sync 0;\nxor.b32 %r3, %r1, 512;\nld.shared.u32 %r4, [%r3];\n" + copy, 64),
      "which warp 1 lane 0 wrote at line 21 with no barrier between");
}

TEST(CopyAsync, Misaligned) {
  EXPECT_WORDS(errorOf("cp.async.cg.shared.global [%r1], [%rd1+8], 16;"), "which is misaligned: a multiple of 16");
  EXPECT_WORDS(errorOf("cp.async.cg.shared.global [%r1+4], [%rd1], 16;"), "which is misaligned: a multiple of 16");
  EXPECT_WORDS(errorOf("add.u32 %r1, %r1, 8;\n"
                       "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r1];"),
               "a row of a matrix is at 0x408, which is misaligned");
  EXPECT_WORDS(errorOf("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r1];", 7), "ldmatrix needs all 32 lanes");
  EXPECT_WORDS(
      errorOf("mov.b32 %r4, 0;\nsetp.lt.u32 %p1, %r0, 9;\n@%p1 mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 "
              "{%r5, %r6, %r7, %r8}, {%r4, %r4}, {%r4}, {%r4, %r4, %r4, %r4};"),
      "mma needs all 32 lanes, here are 0x1ff");
}

} // namespace
} // namespace kiln::ptx
