// SPDX-License-Identifier: Apache-2.0
// many_calls COUNT: makes COUNT calls of one model, from four threads with random extents and inputs. Each call gives
// the bits of the first one of its kind, and neither the process nor the heap grows.
#include "../seed.h"
#include "small.h"
#include "weights.h"

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <malloc.h>
#include <random>
#include <thread>

using namespace kiln::testing;

namespace {

constexpr int threadCount = 4, contentCount = 3, vocabulary = 11, batches = SMALL_FORWARD_BATCH_MAX,
              mostTokens = SMALL_FORWARD_TOKENS_MAX;

[[noreturn]] void fail(const char *what) {
  std::fprintf(stderr, "many_calls: %s\n", what);
  std::exit(1);
}

/// A call's inputs and outputs; `content` selects the inputs' values.
struct Call {
  int batch, tokens, content;
  std::int32_t words[batches * mostTokens], lengths[batches];
  float logits[batches * mostTokens * vocabulary];

  void run(const small_t *model, const kiln_executor_t *executor, unsigned char *arena) {
    for (int i = 0; i < batch * tokens; ++i)
      words[i] = (i * 5 + content * 3) % vocabulary;
    for (int i = 0; i < batch; ++i)
      lengths[i] = 1 + (i + content) % tokens;
    kiln_error_t error;
    const kiln_call_t call{arena, SMALL_FORWARD_ARENA_BYTES(2), executor, &error};
    if (small_forward(model, &call, batch, tokens, words, lengths, logits) != KILN_OK)
      fail(error.message);
  }
  std::size_t bytes() const { return static_cast<std::size_t>(batch * tokens * vocabulary) * sizeof(float); }
};

using Firsts = Call[batches][mostTokens][contentCount];

/// Makes a part of the calls; some use the pool, which one thread uses at a time.
void callMany(const small_t *model, const kiln_executor_t *pool, const Firsts &firsts, std::int64_t count,
              unsigned seed) {
  alignas(KILN_ARENA_ALIGNMENT) unsigned char arena[SMALL_FORWARD_ARENA_BYTES(2)];
  std::mt19937 random(seed);
  Call call;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto draw = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
    call.batch = 1 + draw(batches);
    call.tokens = 1 + draw(mostTokens);
    call.content = draw(contentCount);
    std::memset(arena, draw(256), sizeof arena);
    call.run(model, draw(32) ? nullptr : pool, arena);
    if (std::memcmp(call.logits, firsts[call.batch - 1][call.tokens - 1][call.content].logits, call.bytes()) != 0)
      fail("a call gave other bits than the first one of its extents and inputs");
  }
}

void callFromThreads(const small_t *model, const kiln_executor_t *pool, const Firsts &firsts, std::int64_t count,
                     unsigned seed) {
  std::thread threads[threadCount];
  for (int i = 0; i < threadCount; ++i)
    threads[i] = std::thread([&, i] { callMany(model, pool, firsts, count / threadCount, seed + i); });
  for (std::thread &thread : threads)
    thread.join();
}

/// Returns the resident memory of the process in bytes.
std::int64_t residentBytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * 4096;
}

} // namespace

int main(int argc, char **argv) {
  const std::int64_t count = argc == 2 ? std::atoll(argv[1]) : 0;
  if (count < 100)
    fail("a number of calls is required, of at least 100");
  small_t *model = nullptr;
  kiln_pool_t *pool = nullptr;
#define KILN_TEST_WEIGHT(name, type, copies, ...) {name, copies, {__VA_ARGS__}},
  const WeightImage image(std::vector<WeightShape>{SMALL_WEIGHTS(KILN_TEST_WEIGHT)});
  if (small_create(nullptr, &model, nullptr) || small_pool_create(2, &pool, nullptr) ||
      small_bind_weights_from_memory(model, image.data(), image.size(), nullptr))
    fail("no model");
  static Firsts firsts;
  alignas(KILN_ARENA_ALIGNMENT) unsigned char arena[SMALL_FORWARD_ARENA_BYTES(2)];
  for (int batch = 0; batch < batches; ++batch)
    for (int tokens = 0; tokens < mostTokens; ++tokens)
      for (int content = 0; content < contentCount; ++content) {
        Call &first = firsts[batch][tokens][content];
        first = {batch + 1, tokens + 1, content, {}, {}, {}};
        first.run(model, nullptr, arena);
      }
  const unsigned seed = kiln::testing::testSeed();
  // The first calls allocate the threads' stacks and the allocator's arenas.
  callFromThreads(model, small_pool_executor(pool), firsts, count / 10, seed);
  const std::int64_t resident = residentBytes();
  const auto heap = static_cast<std::int64_t>(mallinfo2().uordblks);
  callFromThreads(model, small_pool_executor(pool), firsts, count, seed + threadCount);
  const std::int64_t grown = residentBytes() - resident,
                     heapGrown = static_cast<std::int64_t>(mallinfo2().uordblks) - heap;
  std::printf("%" PRId64 " calls; the process grew by %" PRId64 " bytes, its heap by %" PRId64 "\n", count, grown,
              heapGrown);
  small_pool_destroy(pool);
  small_destroy(model);
  // A leak per call would occur a hundred thousand times.
  if (grown > 1 << 20 || heapGrown > 1 << 14)
    fail("memory grows");
}
