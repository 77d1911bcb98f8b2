// SPDX-License-Identifier: Apache-2.0
//
// Clusters: multicast copies, distributed shared memory, remote arrivals; and the errors that are detected.
#include "hopper_support.h"

namespace kiln::ptx {
namespace {

/// Two blocks: the first one's copy is multicast to both, and each reads the other's shared memory.
TEST(Clusters, MulticastAndRemoteReads) {
  const std::string body =
      initialise + "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n" + expect(512) +
      "mov.u32 %r3, %cluster_ctarank;\nsetp.ne.u32 %p3, %r3, 0;\nor.pred %p4, %p1, %p3;\nmov.u16 %rs1, 3;\n"
      "mov.b64 %rd10, smem;\n"
      "@!%p4 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%rd10], [%rd1, {0, 0}], [smem+16384], %rs1;\n" +
      waitFor(0, "W") +
      "mov.u32 %r4, smem;\nmad.lo.u32 %r4, %r0, 4, %r4;\nld.shared.u32 %r5, [%r4];\n"
      "mad.lo.u32 %r5, %r3, 1000, %r5;\nst.shared.u32 [%r4+1024], %r5;\n"
      "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
      "xor.b32 %r6, %r3, 1;\nmapa.shared::cluster.u32 %r7, %r4, %r6;\nld.shared::cluster.u32 %r8, [%r7+1024];\n"
      "mad.lo.u32 %r9, %r3, 128, %r0;\nmad.wide.u32 %rd12, %r9, 4, %rd3;\nst.global.u32 [%rd12], %r8;\n"
      "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
  Device device(hopperKernel(body, ".reqnctapercluster 2, 1, 1"));
  std::vector<std::uint32_t> values(128);
  for (unsigned i = 0; i < 128; ++i)
    values[i] = i * i;
  const std::uint64_t from = device.upload(values), out = device.memory.allocate(1024);
  const Map map = encode(map2d(from, 4, 32, 4, 32, 4));
  const LaunchResult result = device.run({{2}, {128}, {}, 16392}, {map, map, out, out});
  ASSERT_TRUE(result) << result.error;
  const auto got = device.download<std::uint32_t>(out, 256);
  for (unsigned i = 0; i < 256; ++i) {
    // With the swizzle, each 16 bytes of a 128-byte row are permuted.
    const unsigned word = swizzled(i % 128 * 4, TensorMap::Swizzle::bytes128) / 4;
    EXPECT_EQ(got[i], values[word] + (i < 128 ? 1000U : 0U)) << i;
  }
}

/// A barrier of all threads of the cluster.
const std::string meet = "barrier.cluster.arrive;\nbarrier.cluster.wait;\n";
/// The address of the other block's shared memory in %r7; %p4: the thread is not the first one of rank 0, %p5: of rank
/// 1.
const std::string other = "mov.u32 %r3, %cluster_ctarank;\nxor.b32 %r6, %r3, 1;\nmov.u32 %r4, smem;\n"
                          "mapa.shared::cluster.u32 %r7, %r4, %r6;\nadd.u32 %r8, %r3, 40;\n"
                          "setp.ne.u32 %p3, %r3, 0;\nor.pred %p4, %p1, %p3;\nsetp.ne.u32 %p3, %r3, 1;\n"
                          "or.pred %p5, %p1, %p3;\n";
/// Stores a word in the other block, and arrives at its mbarrier.
std::string send(const std::string &unless) {
  return "@!" + unless + " st.shared::cluster.u32 [%r7], %r8;\n@!" + unless +
         " mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7+16384];\n";
}
const std::string receive = waitFor(0, "W") + "ld.shared.u32 %r9, [smem];\nmad.wide.u32 %rd12, %r3, 4, %rd3;\n"
                                              "@!%p1 st.global.u32 [%rd12], %r9;\n";

struct Ran {
  std::string error;
  std::vector<std::uint32_t> words;
};
Ran run(const std::string &body) {
  Device device(hopperKernel(body, ".reqnctapercluster 2, 1, 1"));
  std::vector<std::uint32_t> values(128, 7);
  const std::uint64_t from = device.upload(values), out = device.upload(std::vector<std::uint32_t>(2));
  const Map map = encode(map2d(from, 4, 32, 4, 32, 4));
  Ran ran{device.run({{2}, {128}, {}, 16392}, {map, map, out, out}).error, {}};
  ran.words = device.download<std::uint32_t>(out, 2);
  return ran;
}

TEST(Clusters, ArrivalsAtTheOtherBlock) {
  // Each block waits for the other one's last access, so that a barrier at the end is optional.
  for (const std::string &end : {std::string(), meet}) {
    const Ran ran = run(initialise + other + meet + send("%p1") + receive + end);
    EXPECT_EQ(ran.error, "");
    EXPECT_EQ(ran.words, (std::vector<std::uint32_t>{41, 40}));
  }
}

TEST(Clusters, FindsBlocksThatMayNotBeThere) {
  EXPECT_WORDS(run(initialise + other + send("%p1") + receive).error,
               "reaches shared memory of the cluster's block 1, which may not have begun");
  // A block that has ended, and one that ends although another one may still access it.
  EXPECT_WORDS(run(initialise + other + meet + send("%p5")).error,
               "reaches shared memory of the cluster's block 0, which has ended");
  EXPECT_WORDS(run(initialise + other + meet + send("%p4")).error,
               "the block ends, and warp 0 of the cluster's block 0 reaches its shared memory at line");
  EXPECT_EQ(run(initialise + other + meet + send("%p4") + meet).error, "");
}

TEST(Clusters, FindsArrivalsOfTheWrongSpace) {
  EXPECT_WORDS(run(initialise + other + meet + "@!%p1 mbarrier.arrive.shared::cta.b64 _, [%r7+16384];\n" + meet).error,
               "the mbarrier is another block's");
  EXPECT_WORDS(run(initialise + other + meet + "mbarrier.try_wait.parity.shared.b64 %p2, [%r7+16384], 0;\n").error,
               "the mbarrier is another block's");
}

TEST(Clusters, FindsStagesThatTheOtherBlockStillReads) {
  const std::string copy = expect(512) +
                           "mov.u16 %rs1, 3;\nmov.b64 %rd10, smem;\n"
                           "@!%p4 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                           ".multicast::cluster [%rd10], [%rd1, {0, 0}], [smem+16384], %rs1;\n";
  // Only rank 1 reads.
  const std::string read = "@!%p3 ld.shared.u32 %r9, [smem];\n";
  const std::string first = initialise + other + meet + copy + waitFor(0, "W");
  EXPECT_EQ(run(first + read + meet + copy + waitFor(1, "V") + meet).error, "");
  EXPECT_WORDS(run(first + meet + read + copy + waitFor(1, "V") + meet).error, "of the cluster's block 1 read at line");
}

} // namespace
} // namespace kiln::ptx
