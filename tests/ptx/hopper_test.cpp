// SPDX-License-Identifier: Apache-2.0
//
// sm_90a: mbarriers, tensor copies and wgmma, compared with plain loops; and the errors that each of them detects.
#include "hopper_support.h"

namespace kiln::ptx {
namespace {

/// A box across two edges: elements outside of the tensor are zero. It is copied back to another tensor of the same
/// size, which drops elements outside of it.
TEST(Tensors, BoxesOverEdges) {
  for (const auto swizzle : {TensorMap::Swizzle::none, TensorMap::Swizzle::bytes32, TensorMap::Swizzle::bytes64,
                             TensorMap::Swizzle::bytes128}) {
    const unsigned rows = 13, columns = 24, boxRows = 16, boxColumns = 16;
    Device device(
        hopperKernel(initialise + expect(boxRows * boxColumns * 2) + bring("%rd1", 2, "12, -3", 0) + waitFor(0, "W") +
                     "fence.proxy.async.shared::cta;\nmov.b64 %rd11, smem;\n"
                     "@!%p1 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd2, {12, -3}], [%rd11];\n"
                     "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n"));
    std::vector<std::uint16_t> values(rows * columns), nothing(rows * columns, 9);
    for (unsigned i = 0; i < values.size(); ++i)
      values[i] = static_cast<std::uint16_t>(i);
    const std::uint64_t from = device.upload(values), to = device.upload(nothing);
    const LaunchResult result = device.run(
        {{1}, {64}, {}, 16392}, {encode(map2d(from, rows, columns, boxRows, boxColumns, 2, swizzle)),
                                 encode(map2d(to, rows, columns, boxRows, boxColumns, 2, swizzle)), from, to});
    ASSERT_TRUE(result) << result.error;
    const auto got = device.download<std::uint16_t>(to, values.size());
    for (unsigned i = 0; i < rows; ++i)
      for (unsigned j = 0; j < columns; ++j)
        ASSERT_EQ(got[i * columns + j], j >= 12 ? values[i * columns + j] : 9) << i << " " << j;
  }
}

/// Stores the sums of 64 x N: 12 or 32 registers per thread.
std::string storeSums(unsigned n) {
  std::string text = fmt::format("shr.u32 %r30, %r1, 2;\nmad.lo.u32 %r30, %r2, 16, %r30;\nmul.lo.u32 %r31, %r30, {};\n"
                                 "and.b32 %r32, %r1, 3;\nmad.lo.u32 %r31, %r32, 2, %r31;\n"
                                 "mad.wide.u32 %rd12, %r31, 4, %rd3;\n",
                                 n);
  for (unsigned r = 0; r < n / 2; r += 2)
    text +=
        fmt::format("st.global.v2.b32 [%rd12+{}], {{%d{}, %d{}}};\n", (r / 4 * 8 + r % 4 / 2 * 8 * n) * 4, r, r + 1);
  return text;
}
std::string sums(unsigned n) {
  std::string text = "{";
  for (unsigned r = 0; r < n / 2; ++r)
    text += fmt::format("{}%d{}", r ? ", " : "", r);
  return text + "}";
}
/// Makes a descriptor of the tile at an offset of shared memory, with a 128-byte swizzle and 1024 bytes between groups
/// of eight rows, in %rd<reg>.
std::string descriptor(unsigned reg, unsigned offset) {
  return fmt::format("mov.b64 %rd{0}, smem;\nadd.u64 %rd{0}, %rd{0}, {1};\nshr.u64 %rd{0}, %rd{0}, 4;\n"
                     "or.b64 %rd{0}, %rd{0}, 0x4000004000010000;\n",
                     reg, offset);
}

/// A 64 x 64 and B 24 x 64 in shared memory, in four K steps; then subtracted once more.
TEST(Wgmma, BothInSharedMemory) {
  const unsigned n = 24, k = 64;
  std::string body = initialise + expect(64 * 128 + n * 128) + bring("%rd1", 2, "0, 0", 0) +
                     bring("%rd2", 2, "0, 0", 8192) + waitFor(0, "W") + descriptor(13, 0) + descriptor(14, 8192) +
                     "wgmma.fence.sync.aligned;\n";
  for (unsigned step = 0; step < 4; ++step)
    body += fmt::format("wgmma.mma_async.sync.aligned.m64n{}k16.f32.f16.f16 {}, %rd13, %rd14, {}, {}, 1, 0, 0;\n"
                        "add.u64 %rd13, %rd13, 2;\nadd.u64 %rd14, %rd14, 2;\n",
                        n, sums(n), step ? 1 : 0, step == 3 ? -1 : 1);
  body += "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n" + storeSums(n);
  Device device(hopperKernel(body));
  const std::vector<float> a = smallNumbers(64 * k, 1), b = smallNumbers(n * k, 2);
  const std::uint64_t pa = device.upload(halves(a)), pb = device.upload(halves(b)),
                      out = device.memory.allocate(64 * n * 4);
  const LaunchResult result = device.run(
      {{1}, {128}, {}, 16392}, {encode(map2d(pa, 64, k, 64, 64, 2)), encode(map2d(pb, n, k, n, 64, 2)), out, out});
  ASSERT_TRUE(result) << result.error;
  const auto got = device.download<float>(out, 64 * n);
  for (unsigned i = 0; i < 64; ++i)
    for (unsigned j = 0; j < n; ++j) {
      float sum = 0;
      for (unsigned x = 0; x < k; ++x)
        sum += a[i * k + x] * b[j * k + x] * (x < 48 ? 1.0F : -1.0F);
      ASSERT_EQ(got[i * n + j], sum) << i << " " << j;
    }
}

/// A in registers, 64 x 16; B stored as [k][n], 16 x 64.
TEST(Wgmma, RegistersByTransposed) {
  const unsigned n = 64, k = 16;
  std::string body = initialise + expect(k * 128) + bring("%rd2", 2, "0, 0", 0) + waitFor(0, "W") + descriptor(14, 0) +
                     "shr.u32 %r30, %r1, 2;\nmad.lo.u32 %r30, %r2, 16, %r30;\nand.b32 %r31, %r1, 3;\n"
                     "shl.b32 %r31, %r31, 2;\nmad.lo.u32 %r31, %r30, 32, %r31;\nmad.wide.u32 %rd15, %r31, 1, %rd4;\n"
                     "ld.global.b32 %r40, [%rd15];\nld.global.b32 %r41, [%rd15+256];\n"
                     "ld.global.b32 %r42, [%rd15+16];\nld.global.b32 %r43, [%rd15+272];\n";
  body += fmt::format("wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n{}k16.f32.f16.f16 {}, "
                      "{{%r40, %r41, %r42, %r43}}, %rd14, 0, 1, 1, 1;\n"
                      "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n",
                      n, sums(n)) +
          storeSums(n);
  Device device(hopperKernel(body));
  const std::vector<float> a = smallNumbers(64 * k, 3), b = smallNumbers(k * n, 4);
  const std::uint64_t pa = device.upload(halves(a)), pb = device.upload(halves(b)),
                      out = device.memory.allocate(64 * n * 4);
  const Map map = encode(map2d(pb, k, n, k, 64, 2));
  const LaunchResult result = device.run({{1}, {128}, {}, 16392}, {map, map, out, pa});
  ASSERT_TRUE(result) << result.error;
  const auto got = device.download<float>(out, 64 * n);
  for (unsigned i = 0; i < 64; ++i)
    for (unsigned j = 0; j < n; ++j) {
      float sum = 0;
      for (unsigned x = 0; x < k; ++x)
        sum += a[i * k + x] * b[x * n + j];
      ASSERT_EQ(got[i * n + j], sum) << i << " " << j;
    }
}

std::string errorOf(const std::string &body, unsigned threads = 128, bool noMap = false) {
  Device device(hopperKernel(body));
  const std::uint64_t from = device.upload(std::vector<std::uint16_t>(64 * 64));
  const Map map = noMap ? Map{} : encode(map2d(from, 64, 64, 64, 64, 2));
  return device.run({{1}, {threads}, {}, 16392}, {map, map, from, from}).error;
}

const std::string stage = initialise + expect(8192) + bring("%rd1", 2, "0, 0", 0);
const std::string product = descriptor(13, 0) +
                            "wgmma.fence.sync.aligned;\n"
                            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, "
                            "%rd13, %rd13, 0, 1, 1, 0, 0;\nwgmma.commit_group.sync.aligned;\n";
const std::string done = "wgmma.wait_group.sync.aligned 0;\n";

TEST(Hopper, FindsCopiesThatAreNotWaitedFor) {
  EXPECT_EQ(errorOf(stage + waitFor(0, "W") + product + done), "");
  EXPECT_WORDS(errorOf(stage + "bar.sync 0;\n" + product + done), "which an asynchronous copy wrote at line");
  // A wait for the phase before the first one does not wait: a warp reads before the bytes arrive.
  EXPECT_WORDS(errorOf(stage + waitFor(1, "W") + product + done), "which has not been written");
  EXPECT_WORDS(errorOf(stage), "the block ends, and an asynchronous copy reaches its shared memory at line");
}

TEST(Hopper, FindsStagesThatAreGivenBackTooEarly) {
  const std::string again = expect(8192) + bring("%rd1", 2, "0, 0", 0) + waitFor(1, "V");
  EXPECT_EQ(errorOf(stage + waitFor(0, "W") + product + done + "bar.sync 0;\n" + again), "");
  EXPECT_WORDS(errorOf(stage + waitFor(0, "W") + product + "bar.sync 0;\n" + again + done),
               "reads and has not been waited for");
  EXPECT_WORDS(errorOf(stage + waitFor(0, "W") + "bar.sync 0;\n" + product + done + again), "with no barrier between");
}

TEST(Hopper, FindsWrongBarriers) {
  EXPECT_WORDS(errorOf("@!%p1 st.shared.u64 [smem+16384], 0;\nbar.sync 0;\n" + waitFor(0, "W")),
               "there is no mbarrier at 0x4400: it was not initialised, or written over");
  EXPECT_WORDS(errorOf(initialise + "mbarrier.arrive.shared.b64 _, [smem+16384], 2;"),
               "2 arrivals at an mbarrier that lacks 1 of 1");
  EXPECT_WORDS(errorOf(initialise + waitFor(0, "W")), "deadlock: warp 0 (lanes 0xffffffff) at line");
  EXPECT_WORDS(refusalOf(".extern .shared .align 1024 .b8 smem[];\n" +
                         kernelOf("mbarrier.arrive.shared::cluster.b64 %rd3, [smem];")),
               "an arrival of .shared::cluster has no state");
  // The copies have fewer bytes than expected.
  EXPECT_WORDS(errorOf(initialise + expect(9000) + bring("%rd1", 2, "0, 0", 0) + waitFor(0, "W")), "deadlock: ");
  // Other warps use the mbarrier before its initialisation is ordered.
  EXPECT_WORDS(errorOf("mov.u32 %r20, 1;\n@!%p1 mbarrier.init.shared.b64 [smem+16384], %r20;\n" + waitFor(1, "W")),
               "with no barrier between");
}

TEST(Hopper, FindsWrongOperands) {
  EXPECT_WORDS(errorOf(stage, 128, true), "there is no tensor map at 0x40000000000");
  EXPECT_WORDS(errorOf(initialise + bring("%rd1", 3, "0, 0, 0", 0)), "the tensor map has 2 dimensions, the copy 3");
  EXPECT_WORDS(errorOf(initialise + bring("%rd1", 2, "0, 0", 64)), "is misaligned: a multiple of 128 is required");
  EXPECT_WORDS(errorOf(initialise + bring("%rd1", 2, "0, 0", 8320)),
               "out of range of the 16392 bytes of shared memory");
  EXPECT_WORDS(errorOf(stage + waitFor(0, "W") + product + done, 96), "wgmma needs four whole warps");
  TensorMap map = map2d(0x1000, 8, 64, 8, 64, 2);
  map.box[0] = 128;
  EXPECT_EQ(check(map), "a swizzle of 128 bytes holds no rows of 256");
  map.strides[0] = 24;
  EXPECT_WORDS(*check(map), "strides are multiples of 16");
}

} // namespace
} // namespace kiln::ptx
