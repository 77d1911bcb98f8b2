// SPDX-License-Identifier: Apache-2.0
//
// The loops are written in assembly, so that they do not depend on the flags with which this file is compiled.
// Independent chains hide the latency of a multiply-add: on x86-64 two pipes of four or five cycles need ten, on
// aarch64 four pipes of four cycles need sixteen.
#include "compiler/tuner/Probes.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>

namespace kiln {

static constexpr long rounds = 50'000; // iterations over the chains: a quarter of a millisecond
static constexpr int attempts = 15;

#if defined(__x86_64__)

static constexpr int chains = 12;

#define KILN_STEP(OPERATION, REGISTER, I) OPERATION "%%" REGISTER #I "\n"
#define KILN_CHAINS(OPERATION, OTHER, REGISTER)                                                                        \
  KILN_STEP(OPERATION, REGISTER, 0)                                                                                    \
  KILN_STEP(OTHER, REGISTER, 1)                                                                                        \
  KILN_STEP(OPERATION, REGISTER, 2)                                                                                    \
  KILN_STEP(OTHER, REGISTER, 3)                                                                                        \
  KILN_STEP(OPERATION, REGISTER, 4)                                                                                    \
  KILN_STEP(OTHER, REGISTER, 5)                                                                                        \
  KILN_STEP(OPERATION, REGISTER, 6)                                                                                    \
  KILN_STEP(OTHER, REGISTER, 7)                                                                                        \
  KILN_STEP(OPERATION, REGISTER, 8)                                                                                    \
  KILN_STEP(OTHER, REGISTER, 9)                                                                                        \
  KILN_STEP(OPERATION, REGISTER, 10)                                                                                   \
  KILN_STEP(OTHER, REGISTER, 11)
#define KILN_CLOBBERS                                                                                                  \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",  \
      "cc", "memory"
#define KILN_COMPUTE(LOAD, OPERATION, OTHER, REGISTER)                                                                 \
  {                                                                                                                    \
    long left = rounds;                                                                                                \
    const float *factor = values[0], *term = values[1];                                                                \
    asm volatile(KILN_CHAINS(LOAD " (%1), ", LOAD " (%1), ", REGISTER) LOAD                                            \
                 " (%1), %%" REGISTER "12\n" LOAD " (%2), %%" REGISTER "13\n"                                          \
                 "1:\n" KILN_CHAINS(OPERATION, OTHER, REGISTER) "dec %0\n"                                             \
                                                                "jnz 1b\n"                                             \
                 : "+r"(left)                                                                                          \
                 : "r"(factor), "r"(term)                                                                              \
                 : KILN_CLOBBERS);                                                                                     \
  }
/// Reads blocks of eight registers; `bytes` must be a positive multiple of a block.
#define KILN_READ(LOAD, REGISTER, WIDTH)                                                                               \
  asm volatile("1:\n" LOAD " (%0), %%" REGISTER "0\n" LOAD " 1*" WIDTH "(%0), %%" REGISTER "1\n" LOAD " 2*" WIDTH      \
               "(%0), %%" REGISTER "2\n" LOAD " 3*" WIDTH "(%0), %%" REGISTER "3\n" LOAD " 4*" WIDTH                   \
               "(%0), %%" REGISTER "4\n" LOAD " 5*" WIDTH "(%0), %%" REGISTER "5\n" LOAD " 6*" WIDTH                   \
               "(%0), %%" REGISTER "6\n" LOAD " 7*" WIDTH "(%0), %%" REGISTER "7\n"                                    \
               "add $8*" WIDTH ", %0\n"                                                                                \
               "sub $8*" WIDTH ", %1\n"                                                                                \
               "jnz 1b\n"                                                                                              \
               : "+r"(data), "+r"(bytes)                                                                               \
               :                                                                                                       \
               : KILN_CLOBBERS)

alignas(64) static const float values[2][16] = {{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {}};

static void compute(const MachineModel &machine) {
  if (machine.vectorBytes == 64)
    KILN_COMPUTE("vmovups", "vfmadd213ps %%zmm13, %%zmm12, ", "vfmadd213ps %%zmm13, %%zmm12, ", "zmm")
  else if (machine.vectorBytes == 32)
    KILN_COMPUTE("vmovups", "vfmadd213ps %%ymm13, %%ymm12, ", "vfmadd213ps %%ymm13, %%ymm12, ", "ymm")
  else
    KILN_COMPUTE("movups", "mulps %%xmm12, ", "addps %%xmm13, ", "xmm")
}

static void readAll(const MachineModel &machine, const char *data, int64_t bytes) {
  if (machine.vectorBytes == 64)
    KILN_READ("vmovups", "zmm", "64");
  else if (machine.vectorBytes == 32)
    KILN_READ("vmovups", "ymm", "32");
  else
    KILN_READ("movups", "xmm", "16");
}

#elif defined(__aarch64__)

static constexpr int chains = 24;
static const float values[2][4] = {{1, 1, 1, 1}, {}};

#define KILN_SUMS "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23"

/// Multiply-adds of one and zero, which keep the sums at one.
static void compute(const MachineModel &) {
  long left = rounds;
  asm volatile("ldr q24, [%1]\n"
               "ldr q25, [%2]\n"
               ".irp i, " KILN_SUMS "\n"
               "ldr q\\i, [%1]\n"
               ".endr\n"
               "1:\n"
               ".irp i, " KILN_SUMS "\n"
               "fmla v\\i\\().4s, v24.4s, v25.4s\n"
               ".endr\n"
               "subs %0, %0, #1\n"
               "b.ne 1b\n"
               : "+r"(left)
               : "r"(values[0]), "r"(values[1])
               : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15",
                 "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "cc", "memory");
}

/// Reads blocks of eight registers; `bytes` must be a positive multiple of a block.
static void readAll(const MachineModel &, const char *data, int64_t bytes) {
  asm volatile("1:\n"
               "ldp q0, q1, [%0]\n"
               "ldp q2, q3, [%0, #32]\n"
               "ldp q4, q5, [%0, #64]\n"
               "ldp q6, q7, [%0, #96]\n"
               "add %0, %0, #128\n"
               "subs %1, %1, #128\n"
               "b.ne 1b\n"
               : "+r"(data), "+r"(bytes)
               :
               : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "cc", "memory");
}

#else // rates of zero, from which nothing is predicted

static void compute(const MachineModel &) {}
static void readAll(const MachineModel &, const char *, int64_t) {}
#endif

/// Returns the number of operations of compute().
static double operations([[maybe_unused]] const MachineModel &machine) {
#if defined(__x86_64__) || defined(__aarch64__)
  return double(rounds) * chains * machine.vectorBytes / 4 * (machine.hasFusedMultiplyAdd ? 2 : 1);
#else
  return 0;
#endif
}

/// Returns the highest rate, in `amount` per second, of `task` run once by every worker; the first attempt warms up.
static double bestRate(const kiln_executor_t *executor, double amount, const std::function<void(uint32_t)> &task) {
  using Clock = std::chrono::steady_clock;
  double best = 0;
  uint32_t workers = executor ? executor->workers : 1;
  // A late thread would leave its task to another; therefore tasks wait for each other, up to a deadline.
  std::atomic<uint32_t> arrived = 0;
  const std::function<void(uint32_t)> together = [&](uint32_t index) {
    uint32_t round = arrived.fetch_add(1) / workers;
    Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(20);
    while (arrived.load() < (round + 1) * workers && Clock::now() < deadline)
      continue;
    task(index);
  };
  for (int attempt = 0; attempt < attempts; ++attempt) {
    arrived = 0;
    Clock::time_point start = Clock::now();
    if (executor)
      executor->parallel_for(
          executor->self, workers,
          [](void *context, uint32_t index, uint32_t) {
            (*static_cast<const std::function<void(uint32_t)> *>(context))(index);
          },
          const_cast<std::function<void(uint32_t)> *>(&together));
    else
      task(0);
    double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (attempt > 0)
      best = std::max(best, amount * workers / seconds);
  }
  return best;
}

double probeOperations(const MachineModel &machine, const kiln_executor_t *executor) {
  return bestRate(executor, operations(machine), [&](uint32_t) { compute(machine); });
}

static constexpr int64_t block = 4096;
/// A worker's share in whole blocks, and the number of repetitions that makes a round long enough to measure.
struct Share {
  int64_t bytes, repeats;
  Share(int64_t footprint, const kiln_executor_t *executor)
      : bytes(std::max(footprint / (executor ? executor->workers : 1) / block * block, block)),
        repeats(std::max<int64_t>((8 << 20) / bytes, 1)) {}
};

using Filled = std::unique_ptr<char, decltype(&std::free)>;
static Filled makeFilled(int64_t bytes) {
  Filled memory(static_cast<char *>(std::aligned_alloc(block, bytes)), std::free);
  if (!memory)
    llvm::report_bad_alloc_error("no memory for a probe");
  memset(memory.get(), 1, bytes);
  return memory;
}

double probeReading(const MachineModel &machine, int64_t footprint, const kiln_executor_t *executor) {
  Share share(footprint, executor);
  Filled memory = makeFilled(share.bytes * (executor ? executor->workers : 1));
  return bestRate(executor, double(share.bytes * share.repeats), [&](uint32_t i) {
    for (int64_t repeat = 0; repeat < share.repeats; ++repeat)
      readAll(machine, memory.get() + i * share.bytes, share.bytes);
  });
}

double probeCopying(int64_t footprint, const kiln_executor_t *executor) {
  Share share(footprint / 2, executor);
  Filled memory = makeFilled(2 * share.bytes * (executor ? executor->workers : 1));
  return bestRate(executor, 2.0 * double(share.bytes * share.repeats), [&](uint32_t i) {
    char *from = memory.get() + 2 * i * share.bytes;
    for (int64_t repeat = 0; repeat < share.repeats; ++repeat)
      memcpy(from + share.bytes, from, share.bytes);
  });
}

static double secondsOf(double amount, double rate) { return rate > 0 ? amount / rate : 0; }

/// A write costs as much as in a copy, which includes an equal number of bytes read.
static double secondsOfBytes(const Work &work, const Rates &rates) {
  double copied = work.bytesWritten + std::min(work.bytesRead, work.bytesWritten);
  return secondsOf(copied, rates.bytesCopied) +
         secondsOf(std::max(work.bytesRead - work.bytesWritten, 0.0), rates.bytesRead);
}

double leastSeconds(const Work &work, const Rates &rates) {
  return std::max(secondsOf(work.operations, rates.operations), secondsOfBytes(work, rates));
}

bool isBoundByOperations(const Work &work, const Rates &rates) {
  return secondsOf(work.operations, rates.operations) >= secondsOfBytes(work, rates);
}

} // namespace kiln
