// SPDX-License-Identifier: Apache-2.0
//
// Independent chains hide the latency of a fused multiply-add: on x86-64 two pipes with four or five cycles need ten,
// on aarch64 four pipes with four cycles need sixteen. They are written out, since at low optimisation levels a
// compiler keeps an array of vectors in memory.
#include "benchmarks/support/Probes.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <sys/mman.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#else
#error "Probes.cpp: no loops for this CPU; expected x86-64 or aarch64"
#endif

namespace kiln::bench {

static constexpr long fmaRounds = 100'000; // about 0.5 ms
/// A sink for results, so that compilers do not remove the work.
static volatile float sink;

#if defined(__x86_64__)

static constexpr int chains = 12;

#define KILN_CHAINS(STEP)                                                                                              \
  STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7) STEP(8) STEP(9) STEP(10) STEP(11)

__attribute__((target("avx512f"), noinline)) static void runFma512(float factor, float term) {
  const __m512 x = _mm512_set1_ps(factor), y = _mm512_set1_ps(term);
#define KILN_STEP(i) __m512 a##i = y;
  KILN_CHAINS(KILN_STEP)
#undef KILN_STEP
  for (long round = 0; round < fmaRounds; ++round) {
#define KILN_STEP(i) a##i = _mm512_fmadd_ps(a##i, x, y);
    KILN_CHAINS(KILN_STEP)
#undef KILN_STEP
  }
  __m512 total = _mm512_setzero_ps();
#define KILN_STEP(i) total = _mm512_add_ps(total, a##i);
  KILN_CHAINS(KILN_STEP)
#undef KILN_STEP
  sink = _mm512_cvtss_f32(total);
}

__attribute__((target("avx2,fma"), noinline)) static void runFma256(float factor, float term) {
  const __m256 x = _mm256_set1_ps(factor), y = _mm256_set1_ps(term);
#define KILN_STEP(i) __m256 a##i = y;
  KILN_CHAINS(KILN_STEP)
#undef KILN_STEP
  for (long round = 0; round < fmaRounds; ++round) {
#define KILN_STEP(i) a##i = _mm256_fmadd_ps(a##i, x, y);
    KILN_CHAINS(KILN_STEP)
#undef KILN_STEP
  }
  __m256 total = _mm256_setzero_ps();
#define KILN_STEP(i) total = _mm256_add_ps(total, a##i);
  KILN_CHAINS(KILN_STEP)
#undef KILN_STEP
  sink = _mm256_cvtss_f32(total);
}

/// Reads whole blocks of 256 bytes.
__attribute__((target("avx2"), noinline)) static void readAll(const std::byte *data, std::size_t bytes) {
  __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;
  for (std::size_t i = 0; i + 256 <= bytes; i += 256) {
    const __m256i *block = reinterpret_cast<const __m256i *>(data + i);
    a = _mm256_xor_si256(_mm256_xor_si256(a, _mm256_loadu_si256(block)), _mm256_loadu_si256(block + 1));
    b = _mm256_xor_si256(_mm256_xor_si256(b, _mm256_loadu_si256(block + 2)), _mm256_loadu_si256(block + 3));
    c = _mm256_xor_si256(_mm256_xor_si256(c, _mm256_loadu_si256(block + 4)), _mm256_loadu_si256(block + 5));
    d = _mm256_xor_si256(_mm256_xor_si256(d, _mm256_loadu_si256(block + 6)), _mm256_loadu_si256(block + 7));
  }
  const __m256i all = _mm256_xor_si256(_mm256_xor_si256(a, b), _mm256_xor_si256(c, d));
  sink = static_cast<float>(_mm256_extract_epi32(all, 0) ^ _mm256_extract_epi32(all, 5));
}

const char *probeIsa() {
  if (__builtin_cpu_supports("avx512f"))
    return "avx512f";
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? "avx2" : nullptr;
}

static void runFma(float factor, float term) {
  (__builtin_cpu_supports("avx512f") ? runFma512 : runFma256)(factor, term);
}
static int fmaLanes() { return __builtin_cpu_supports("avx512f") ? 16 : 8; }

#define KILN_DEPENDENT_ADDITIONS "1: .rept 32\n add $1, %1\n .endr\n dec %0\n jnz 1b"
#define KILN_NOPS "1: .rept 64\n nop\n .endr\n dec %0\n jnz 1b"

#else

static constexpr int chains = 16;

// clang-format off
#define KILN_CHAINS(STEP)                                                                                              \
  STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7)                                                      \
  STEP(8) STEP(9) STEP(10) STEP(11) STEP(12) STEP(13) STEP(14) STEP(15)
// clang-format on

__attribute__((noinline)) static void runFma(float factor, float term) {
  const float32x4_t x = vdupq_n_f32(factor), y = vdupq_n_f32(term);
#define KILN_STEP(i) float32x4_t a##i = y;
  KILN_CHAINS(KILN_STEP)
#undef KILN_STEP
  for (long round = 0; round < fmaRounds; ++round) {
    // FMLA adds a product to its destination; a product with the destination would take a copy in each step.
#define KILN_STEP(i) a##i = vfmaq_f32(a##i, x, y);
    KILN_CHAINS(KILN_STEP)
#undef KILN_STEP
  }
  float32x4_t total = vdupq_n_f32(0);
#define KILN_STEP(i) total = vaddq_f32(total, a##i);
  KILN_CHAINS(KILN_STEP)
#undef KILN_STEP
  sink = vgetq_lane_f32(total, 0);
}
static int fmaLanes() { return 4; }

/// Reads whole blocks of 64 bytes.
__attribute__((noinline)) static void readAll(const std::byte *data, std::size_t bytes) {
  uint8x16_t a = vdupq_n_u8(0), b = a, c = a, d = a;
  for (std::size_t i = 0; i + 64 <= bytes; i += 64) {
    const auto *block = reinterpret_cast<const std::uint8_t *>(data + i);
    a = veorq_u8(a, vld1q_u8(block));
    b = veorq_u8(b, vld1q_u8(block + 16));
    c = veorq_u8(c, vld1q_u8(block + 32));
    d = veorq_u8(d, vld1q_u8(block + 48));
  }
  const uint8x16_t all = veorq_u8(veorq_u8(a, b), veorq_u8(c, d));
  sink = static_cast<float>(vmaxvq_u8(all));
}

const char *probeIsa() { return "neon"; }

#define KILN_DEPENDENT_ADDITIONS "1: .rept 32\n add %1, %1, #1\n .endr\n subs %0, %0, #1\n b.ne 1b"
#define KILN_NOPS "1: .rept 64\n nop\n .endr\n subs %0, %0, #1\n b.ne 1b"

#endif

Probe makeFmaProbe(const Threads &threads) {
  // On x86-64 the chains converge to 0.5 / (1 - 0.999) = 500, on aarch64 they grow to 50,000: neither infinite nor
  // denormal.
  auto run = [&threads] { threads.onAll([](int) { runFma(0.999f, 0.5f); }); };
  return {run, 2.0 * fmaLanes() * chains * fmaRounds * threads.count()};
}

double secondsOf(const std::function<void()> &run) {
  auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double instructionsPerCycle(const Threads &threads) {
  constexpr long rounds = 5000;
  constexpr double chained = 32, free = 64; // instructions per round
  std::vector<double> rates(static_cast<std::size_t>(threads.count()));
  threads.onAll([&](int i) {
    // Dependent additions take one cycle each.
    double cycles = secondsOf([] {
      long left = rounds, sum = 0;
      asm volatile(KILN_DEPENDENT_ADDITIONS : "+r"(left), "+r"(sum) : : "cc");
    });
    double slots = secondsOf([] {
      long left = rounds;
      asm volatile(KILN_NOPS : "+r"(left) : : "cc");
    });
    rates[static_cast<std::size_t>(i)] = free / chained * cycles / slots;
  });
  return *std::min_element(rates.begin(), rates.end());
}

/// Each thread's share of `bytes`, in whole blocks.
static std::size_t shareOf(std::size_t bytes, const Threads &threads) {
  return bytes / static_cast<std::size_t>(threads.count()) / 256 * 256;
}

static std::shared_ptr<Memory> makeFilled(std::size_t bytes) {
  auto memory = std::make_shared<Memory>(bytes);
  std::memset(memory->data(), 1, memory->size());
  return memory;
}

Probe makeReadProbe(const Threads &threads, std::size_t bytes) {
  std::size_t share = shareOf(bytes, threads);
  auto run = [&threads, share, memory = makeFilled(bytes)] {
    threads.onAll([&](int i) { readAll(memory->data() + share * static_cast<std::size_t>(i), share); });
  };
  return {run, static_cast<double>(share) * threads.count()};
}

Probe makeCopyProbe(const Threads &threads, std::size_t bytes) {
  std::size_t share = shareOf(bytes / 2, threads);
  auto run = [&threads, share, memory = makeFilled(bytes), half = bytes / 2] {
    threads.onAll([&](int i) {
      std::byte *from = memory->data() + share * static_cast<std::size_t>(i);
      std::memcpy(from + half, from, share);
    });
  };
  return {run, 2.0 * static_cast<double>(share) * threads.count()};
}

void readFile(const std::string &path) {
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (file && std::fseek(file.get(), 0, SEEK_END) == 0) {
    const auto bytes = static_cast<std::size_t>(std::ftell(file.get()));
    std::rewind(file.get());
    // Not from the heap, which may reuse memory that a peer has freed, whose pages are already mapped.
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const bool isRead = memory != MAP_FAILED && std::fread(memory, 1, bytes, file.get()) == bytes;
    if (memory != MAP_FAILED)
      munmap(memory, bytes);
    if (isRead)
      return;
  }
  std::fprintf(stderr, "error: cannot read \"%s\"\n", path.c_str());
  std::exit(1);
}

} // namespace kiln::bench
