// SPDX-License-Identifier: Apache-2.0
//
// Each error that the interpreter detects, and its message.
#include "support.h"

namespace kiln::ptx {
namespace {

/// Runs a kernel with this body on `threads`, with a buffer of 64 written and 64 unwritten words. Returns the error.
std::string errorOf(const std::string &body, unsigned threads = 32, std::uint32_t dynamicShared = 0) {
  Device device(kernelOf(body, ".extern .shared .align 16 .b8 smem[];\n"));
  const std::uint64_t buffer = device.memory.allocate(512);
  EXPECT_FALSE(device.memory.copyIn(buffer, std::vector<std::byte>(256)));
  return device.run({{1}, {threads}, {}, dynamicShared}, {buffer}).error;
}

#define EXPECT_WORDS(error, words) EXPECT_NE((error).find(words), std::string::npos) << (error)

TEST(Detects, OutOfRange) {
  const std::string error = errorOf("mad.wide.u32 %rd1, %r0, 8, %rd0;\nst.global.v2.u32 [%rd1+264], {%r0, %r0};");
  EXPECT_WORDS(error, "kernel k, line 14 \"st.global.v2.u32 [%rd1+264], {%r0, %r0}\", block (0, 0, 0), "
                      "thread (31, 0, 0): writes 8 bytes at ");
  EXPECT_WORDS(error, "out of range: offset 512 of an allocation of 512 bytes");
  EXPECT_WORDS(errorOf("ld.global.u32 %r1, [%rd0+-4];"), "reads 4 bytes at ");
  EXPECT_WORDS(errorOf("mov.u64 %rd1, 0;\nld.global.u32 %r1, [%rd1];"), "4 bytes at 0x0, which is in no allocation");
  EXPECT_WORDS(errorOf("st.shared.u32 [smem+64], %r0;", 32, 64), "out of range of the 64 bytes of shared memory");
  EXPECT_WORDS(errorOf(".local .align 4 .b8 a[8];\nst.local.u32 [a+8], %r0;"), "out of range of the 8 bytes of local");
}

TEST(Detects, FreedMemory) {
  Device device(kernelOf("ld.global.u32 %r1, [%rd0+8];"));
  const std::uint64_t buffer = device.upload(std::vector<int>(10));
  EXPECT_TRUE(device.memory.release(buffer));
  EXPECT_FALSE(device.memory.release(buffer));
  EXPECT_WORDS(device.run({{1}, {1}, {}}, {buffer}).error, "offset 8 of an allocation of 40 bytes that is freed");
}

TEST(Detects, Misaligned) {
  EXPECT_WORDS(errorOf("ld.global.u32 %r1, [%rd0+2];"), "misaligned: a multiple of 4 is required");
  EXPECT_WORDS(errorOf("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd0+8];"), "a multiple of 16 is required");
  EXPECT_WORDS(errorOf("st.shared.u16 [smem+1], %rs1;", 32, 64), "reads register %rs1, which has not been written");
}

TEST(Detects, UnwrittenRegisters) {
  EXPECT_WORDS(errorOf("add.u32 %r1, %r2, 1;"), "reads register %r2, which has not been written");
  EXPECT_WORDS(errorOf("@%p3 bra L;\nL:"), "reads register %p3");
  // Written in some lanes only.
  EXPECT_WORDS(errorOf("setp.lt.u32 %p1, %r0, 7;\n@%p1 mov.u32 %r2, 0;\nadd.u32 %r1, %r2, 1;"), "thread (7, 0, 0)");
  // A move of an unwritten value is allowed; a sum of the moved value is not.
  EXPECT_EQ(errorOf("mov.b32 %r1, %r2;\nmov.b32 %r3, {%rs1, %rs2};"), "");
  EXPECT_WORDS(errorOf("mov.b32 %r1, %r2;\nadd.u32 %r1, %r1, 1;"), "reads register %r1");
  EXPECT_WORDS(errorOf("setp.lt.u32 %p1, %r0, 7;\n@%p1 mov.u32 %r1, 5;\nshfl.sync.idx.b32 %r2, %r1, 9, 31, -1;"),
               "takes the value of lane 9, whose register has not been written");
}

TEST(Detects, UnwrittenMemory) {
  EXPECT_WORDS(errorOf("ld.global.u32 %r1, [%rd0+256];"), "that have not all been written");
  EXPECT_WORDS(errorOf("ld.shared.u32 %r1, [smem];", 32, 64), "reads shared byte 1024, which has not been written");
  EXPECT_WORDS(errorOf(".local .align 4 .b8 a[8];\nld.local.u32 %r1, [a];"), "that have not all been written");
  EXPECT_WORDS(errorOf("atom.global.add.u32 %r1, [%rd0+300], 1;"), "updates 4 bytes at ");
}

/// Before griddepcontrol.wait, memory does not have the results of previous kernels.
TEST(Detects, MemoryBeforeTheWait) {
  const std::string wait = "griddepcontrol.launch_dependents;\ngriddepcontrol.wait;\n",
                    use = "ld.global.u32 %r1, [%rd0];\n";
  EXPECT_EQ(errorOf("prefetch.global.L2 [%rd0];\n" + wait + use), "");
  EXPECT_EQ(errorOf("ld.global.nc.u32 %r1, [%rd0];\n" + wait), "");
  EXPECT_WORDS(errorOf(use + wait), "reads 4 bytes at ");
  EXPECT_WORDS(errorOf(use + wait), " before griddepcontrol.wait");
  EXPECT_WORDS(errorOf("st.global.u32 [%rd0], 1;\n" + wait), " before griddepcontrol.wait");
  EXPECT_WORDS(errorOf("setp.gt.u32 %p1, %r0, 3;\n@%p1 griddepcontrol.wait;\n" + use), "thread (0, 0, 0): reads 4");
  for (const std::string &text : {wait + use, use}) {
    Device device(kernelOf(text));
    LaunchConfig config{{1}, {32}, {}};
    config.isDependentLaunch = true;
    const LaunchResult result = device.run(config, {device.upload(std::vector<unsigned>(1))});
    if (text == use)
      EXPECT_WORDS(result.error, "is launched early and does not wait for the kernels before it");
    else
      EXPECT_EQ(result.error, "");
  }
}

TEST(Detects, UnknownText) {
  EXPECT_WORDS(refusalOf(kernelOf("frob.u32 %r1, %r0;")), "line 12: \"frob.u32 %r1, %r0\": unknown instruction frob");
  EXPECT_WORDS(refusalOf(kernelOf("add.rz.f32 %f1, %f2, %f3;")), "modifier .rz is not modelled");
  EXPECT_WORDS(refusalOf(kernelOf("add.u32 %r1, %r0, %q;")), "unknown name \"%q\"");
  EXPECT_WORDS(refusalOf(kernelOf("add.u64 %r1, %rd1, %rd2;")), "register %r1 of 32 bits is too narrow for u64");
  EXPECT_WORDS(refusalOf(kernelOf("bra NOWHERE;")), "unknown name \"NOWHERE\"");
  EXPECT_WORDS(refusalOf(kernelOf("add.u32 %r1, %r0")), "expected \";\"");
  EXPECT_WORDS(refusalOf(kernelOf("call.uni __nv_expf;", ".extern .func __nv_expf;\n")),
               "calls __nv_expf, which the module declares and does not have");
  EXPECT_WORDS(refusalOf(".texref t;"), "unknown directive");
}

/// Runs two warps, the second of which reads the words that the first one writes.
std::string racing(const std::string &between) {
  return errorOf("shl.b32 %r1, %r0, 2;\nmov.u32 %r2, smem;\nadd.u32 %r3, %r2, %r1;\nst.shared.u32 [%r3], %r0;\n" +
                     between + "\nxor.b32 %r1, %r1, 128;\nadd.u32 %r3, %r2, %r1;\nld.shared.u32 %r4, [%r3];",
                 64, 256);
}

TEST(Detects, RacesBetweenWarps) {
  EXPECT_EQ(racing("bar.sync 0;"), "");
  EXPECT_EQ(racing("bar.sync 3, 64;"), "");
  // The first warp runs first: the second would read an unwritten word otherwise.
  const std::string error = errorOf("setp.gt.u32 %p1, %r0, 31;\n@%p1 bra SECOND;\nst.shared.u32 [smem], 1;\nbra END;\n"
                                    "SECOND:\nld.shared.u32 %r1, [smem];\nEND:",
                                    64, 64);
  EXPECT_WORDS(error,
               "line 18 \"ld.shared.u32 %r1, [smem]\", block (0, 0, 0), thread (32, 0, 0): reads shared byte 1024, "
               "which warp 0 lane 31 wrote at line 15 with no barrier between");
  // A write after a read.
  EXPECT_WORDS(
      errorOf("setp.gt.u32 %p1, %r0, 31;\nsetp.eq.u32 %p2, %r0, 0;\n@%p2 st.shared.u32 [smem], 1;\nbar.sync 0;\n"
              "@%p1 ld.shared.u32 %r1, [smem];\n@!%p1 st.shared.u32 [smem], 2;",
              64, 64),
      "writes shared byte 1024, which warp 1 read at line 17 with no barrier between");
  // An arrival orders earlier accesses, and not later ones.
  EXPECT_WORDS(errorOf("setp.gt.u32 %p1, %r0, 31;\n@%p1 bra SECOND;\nbar.arrive 1, 64;\nst.shared.u32 [smem], 1;\n"
                       "bra END;\nSECOND:\nbar.sync 1, 64;\nld.shared.u32 %r1, [smem];\nEND:",
                       64, 64),
               "wrote at line 16 with no barrier between");
}

TEST(Detects, RacesOfAtomics) {
  const std::string start = "setp.eq.u32 %p2, %r0, 0;\n@%p2 st.shared.u32 [smem], 1;\nbar.sync 0;\n";
  EXPECT_EQ(errorOf(start + "atom.shared.add.u32 %r1, [smem], 1;\nbar.sync 0;\nld.shared.u32 %r2, [smem];", 64, 64),
            "");
  EXPECT_WORDS(errorOf(start + "atom.shared.add.u32 %r1, [smem], 1;\nld.shared.u32 %r2, [smem];", 64, 64),
               "updated at line");
}

TEST(Detects, RacesWithinAWarp) {
  const auto error = [](const std::string &between) {
    return errorOf("shl.b32 %r1, %r0, 2;\nmov.u32 %r2, smem;\nadd.u32 %r3, %r2, %r1;\nst.shared.u32 [%r3], %r0;\n" +
                       between + "xor.b32 %r1, %r1, 4;\nadd.u32 %r3, %r2, %r1;\nld.shared.u32 %r4, [%r3];",
                   32, 128);
  };
  EXPECT_WORDS(error(""), "which warp 0 lane 1 wrote at line 16 with no barrier between");
  EXPECT_EQ(error("bar.warp.sync -1;\n"), "");
  // A store by which all lanes write the same value is no race; a store of different values is.
  EXPECT_EQ(errorOf("st.shared.u32 [smem], 1;", 32, 64), "");
  EXPECT_WORDS(errorOf("st.shared.u32 [smem], %r0;", 32, 64), "with no barrier between");
}

TEST(Detects, BankConflicts) {
  const auto conflictsOf = [](unsigned stride, const std::string &access) {
    Device device(kernelOf("mov.u32 %r2, smem;\nmad.lo.u32 %r1, %r0, " + std::to_string(stride) + ", %r2;\n" + access,
                           ".extern .shared .align 128 .b8 smem[];\n"));
    const LaunchResult result = device.run({{1}, {32}, {}, 8192}, {device.upload(std::vector<unsigned>(64, 7))});
    EXPECT_EQ(result.error, "");
    return result.bankConflicts;
  };
  const std::string store = "st.shared.u32 [%r1], 1;", four = "st.shared.v4.u32 [%r1], {%r2, %r2, %r2, %r2};";
  EXPECT_EQ(conflictsOf(4, store), 0U);
  EXPECT_EQ(conflictsOf(8, store), 1U);
  EXPECT_EQ(conflictsOf(128, store), 31U);
  EXPECT_EQ(conflictsOf(0, store), 0U) << "one word for all";
  EXPECT_EQ(conflictsOf(16, four), 0U) << "eight lanes at a time";
  EXPECT_EQ(conflictsOf(32, four), 4U);
  EXPECT_EQ(conflictsOf(128, "cp.async.cg.shared.global [%r1], [%rd0], 16;\ncp.async.wait_all;"), 28U);
  const std::string matrices =
      "bar.warp.sync -1;\nldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r8, %r9, %r10, %r11}, [%r1];";
  EXPECT_EQ(conflictsOf(16, four + matrices), 0U);
  EXPECT_EQ(conflictsOf(128, four + matrices), 28U + 28U) << "eight rows of a matrix in the same banks";
  EXPECT_EQ(conflictsOf(144, four + matrices), 0U);
}

TEST(Detects, Deadlocks) {
  // One warp does not arrive at the barrier of 96 threads.
  EXPECT_WORDS(errorOf("bar.sync 1, 96;", 64),
               "deadlock: warp 0 (lanes 0xffffffff) at line 13 \"bar.sync 1, 96\", warp 1");
  // Two warps wait for each other at different barriers.
  EXPECT_WORDS(errorOf("setp.gt.u32 %p1, %r0, 31;\n@%p1 bar.sync 1, 64;\n@!%p1 bar.sync 2, 64;", 64), "deadlock: ");
  // One lane never arrives at the shuffle.
  EXPECT_WORDS(errorOf("setp.eq.u32 %p1, %r0, 5;\n@%p1 bra END;\nshfl.sync.idx.b32 %r1, %r0, 0, 31, -1;\nEND:\n"
                       "bar.warp.sync -1;"),
               "waits for other lanes");
  // Barriers do not wait for threads that have exited.
  EXPECT_EQ(errorOf("setp.gt.u32 %p1, %r0, 40;\n@%p1 exit;\nbar.sync 0;", 64), "");
}

TEST(Detects, WrongBarriers) {
  EXPECT_WORDS(errorOf("bar.sync 1, 40;", 64), "barrier 1 of 40 threads: a multiple of 32 is required");
  EXPECT_WORDS(errorOf("bar.sync 16;", 64), "barrier 16 is none of 0 to 15");
  EXPECT_WORDS(errorOf("setp.gt.u32 %p1, %r0, 31;\n@%p1 bar.sync 1, 64;\n@!%p1 bar.sync 1, 96;", 64),
               "barrier 1 is for 64 threads here, and for 96 where others have arrived");
  EXPECT_WORDS(errorOf("shr.u32 %r1, %r0, 3;\nbar.sync %r1, 64;", 64),
               "the barrier differs between the lanes of a warp");
}

TEST(Detects, KernelsThatHang) {
  Device device(kernelOf("LOOP:\nbra LOOP;"));
  LaunchConfig config{{1}, {32}, {}};
  config.limit = 100'000;
  EXPECT_WORDS(device.run(config, {device.memory.allocate(4)}).error, "the kernel is taken to hang");
  EXPECT_WORDS(errorOf("trap;"), "the kernel executes a trap");
}

TEST(Detects, WrongLaunches) {
  Device device(".visible .entry k(.param .u32 a) .maxntid 64, 1, 1 { ret; }");
  EXPECT_WORDS(device.run({{1}, {96}, {}}, {1}).error, "kernel k: the kernel is for at most 64 threads, got 96");
  EXPECT_WORDS(device.run({{1}, {64}, {}, 300'000}, {1}).error, "at most 232448 bytes of shared memory");
  EXPECT_WORDS(device.run({{0}, {64}, {}}, {1}).error, "the grid or the block is empty");
  EXPECT_WORDS(launch(*device.loaded, "k", {{1}, {64}, {}}, {}, device.memory).error,
               "has 4 bytes of parameters, got 0");
  EXPECT_WORDS(launch(*device.loaded, "q", {}, {}, device.memory).error, "the module has no kernel q");
}

} // namespace
} // namespace kiln::ptx
