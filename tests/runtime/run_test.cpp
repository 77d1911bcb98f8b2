// SPDX-License-Identifier: Apache-2.0
// Calling an entry: results with any executor, every refusal with its message, and an arena that is used up to its last
// byte but not beyond.
#include "support.h"

#include "core/run.h"

#include <functional>
#include <gtest/gtest.h>
#include <thread>

namespace {

using namespace kiln_test;

/// All arguments of a call of the test model; tests spoil one of them at a time.
struct Call {
  kiln_model_t *Model = nullptr;
  GuardedMemory Arena;
  std::vector<int32_t> Ids = {4, 0, 3, 3, 1};
  std::vector<float> Rows;
  int64_t Extents[1];
  void *Arguments[2];
  const int64_t *ExtentsGiven = Extents;
  void *const *ArgumentsGiven = Arguments;
  uint32_t Entry = 0;
  kiln_error_t Error = {};
  kiln_call_t Options;

  static size_t arenaBytes(uint32_t workers) {
    const kiln_body_t &body = kiln_descriptor.variants[0].bodies[0];
    return kiln_arena_fixed_bytes(body.plan_bytes, body.scratch_bytes, body.task_bytes) +
           workers * kiln_arena_worker_bytes(body.task_bytes);
  }
  explicit Call(uint32_t workers = 1) : Arena(arenaBytes(workers)) {
    const std::string image = makeImage(testWeights());
    if (kiln_create(nullptr, &Model, &Error) != KILN_OK ||
        kiln_bind_weights_from_memory(Model, image.data(), image.size(), &Error) != KILN_OK)
      std::abort();
    Options = {Arena.data(), Arena.size(), nullptr, &Error};
    setIds(Ids);
  }
  ~Call() { kiln_destroy(Model); }
  void setIds(const std::vector<int32_t> &ids) {
    Ids = ids;
    Rows.assign(ids.size() * Width, -1);
    Extents[0] = static_cast<int64_t>(ids.size());
    Arguments[0] = Ids.data();
    Arguments[1] = Rows.data();
  }
  kiln_status_t run() { return kiln_run(Model, &Options, Entry, ExtentsGiven, ArgumentsGiven); }
};

TEST(Run, GivesTheRowsOfTheModel) {
  Call call;
  for (const std::vector<int32_t> &ids :
       {std::vector<int32_t>{0}, std::vector<int32_t>{4, 0, 3, 3, 1}, std::vector<int32_t>(MaxTokens, 2)}) {
    call.setIds(ids);
    call.Error = {KILN_FILE_ERROR, "from before"};
    ASSERT_EQ(call.run(), KILN_OK) << call.Error.message;
    EXPECT_EQ(call.Rows, expectedRows(ids));
    EXPECT_EQ(call.Error.status, KILN_OK);
    EXPECT_STREQ(call.Error.message, "");
  }
}

// A caller's executor, which runs worker 0 on a thread other than the caller's.
void runOnThreads(void *self, uint32_t count, void (*task)(void *, uint32_t, uint32_t), void *context) {
  uint32_t workers = *static_cast<uint32_t *>(self);
  std::vector<std::thread> threads;
  for (uint32_t worker = 0; worker < workers; ++worker)
    threads.emplace_back([=] {
      for (uint32_t i = worker; i < count; i += workers)
        task(context, i, worker);
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(Run, OnTheCallersThreads) {
  for (uint32_t workers : {1u, 2u, 5u}) {
    Call call(workers);
    const kiln_executor_t executor = {&workers, workers, runOnThreads};
    call.Options.executor = &executor;
    for (int repeat = 0; repeat < 20; ++repeat) {
      call.setIds({1, 2, 3, 4, 0, 1, 2, 3, 4, 0, repeat % Vocabulary});
      ASSERT_EQ(call.run(), KILN_OK) << call.Error.message;
      ASSERT_EQ(call.Rows, expectedRows(call.Ids));
    }
  }
}

TEST(Run, OnThePoolFromSeveralThreadsAtOnce) {
  kiln_pool_t *pool;
  ASSERT_EQ(kiln_pool_create(3, &pool, nullptr), KILN_OK);
  Call shared;
  std::vector<std::thread> threads;
  for (int caller = 0; caller < 4; ++caller)
    threads.emplace_back([&, caller] {
      GuardedMemory arena(Call::arenaBytes(3));
      const kiln_call_t options = {arena.data(), arena.size(), kiln_pool_executor(pool), nullptr};
      for (int repeat = 0; repeat < 50; ++repeat) {
        std::vector<int32_t> ids(1 + (repeat + caller) % MaxTokens, (repeat + caller) % Vocabulary);
        std::vector<float> rows(ids.size() * Width);
        const int64_t extents[] = {static_cast<int64_t>(ids.size())};
        void *const arguments[] = {ids.data(), rows.data()};
        EXPECT_EQ(kiln_run(shared.Model, &options, 0, extents, arguments), KILN_OK);
        EXPECT_EQ(rows, expectedRows(ids));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  kiln_pool_destroy(pool);
}

void runNothing(void *, uint32_t, void (*)(void *, uint32_t, uint32_t), void *) {}

const kiln_executor_t NoLoop = {nullptr, 2, nullptr}, NoWorkers = {nullptr, 0, runNothing},
                      TwoWorkers = {nullptr, 2, runNothing};

TEST(Run, RefusalsHaveWordsAndTouchNoOutput) {
  const struct {
    const char *What;
    std::function<void(Call &)> Spoil;
    kiln_status_t Status;
    std::string Message;
  } cases[] = {
      {"no arena", [](Call &c) { c.Options.arena = nullptr; }, KILN_NULL_ARGUMENT,
       "forward: null given; expected an arena"},
      {"no extents", [](Call &c) { c.ExtentsGiven = nullptr; }, KILN_NULL_ARGUMENT,
       "forward: null given; expected extents"},
      {"no arguments", [](Call &c) { c.ArgumentsGiven = nullptr; }, KILN_NULL_ARGUMENT,
       "forward: null given; expected arguments"},
      {"no input", [](Call &c) { c.Arguments[0] = nullptr; }, KILN_NULL_ARGUMENT,
       "forward: null given; expected input \"ids\""},
      {"no output", [](Call &c) { c.Arguments[1] = nullptr; }, KILN_NULL_ARGUMENT,
       "forward: null given; expected output \"rows\""},
      {"no parallel_for", [](Call &c) { c.Options.executor = &NoLoop; }, KILN_NULL_ARGUMENT,
       "forward: null given; expected an executor with parallel_for"},
      {"no workers", [](Call &c) { c.Options.executor = &NoWorkers; }, KILN_INVALID_ARGUMENT,
       "forward: executor without workers; expected at least 1"},
      {"extent 0", [](Call &c) { c.Extents[0] = 0; }, KILN_EXTENT_OUT_OF_RANGE,
       "forward: tokens out of range; expected [1, 16], got 0"},
      {"extent -1", [](Call &c) { c.Extents[0] = -1; }, KILN_EXTENT_OUT_OF_RANGE,
       "forward: tokens out of range; expected [1, 16], got -1"},
      {"extent above", [](Call &c) { c.Extents[0] = 17; }, KILN_EXTENT_OUT_OF_RANGE,
       "forward: tokens out of range; expected [1, 16], got 17"},
      {"extent huge", [](Call &c) { c.Extents[0] = INT64_MAX; }, KILN_EXTENT_OUT_OF_RANGE,
       "forward: tokens out of range; expected [1, 16], got 9223372036854775807"},
      {"arena misaligned", [](Call &c) { c.Options.arena = c.Arena.data() - 8; }, KILN_ARENA_MISALIGNED,
       "forward: arena misaligned; expected alignment 64, got 56 past it"},
      {"arena too small", [](Call &c) { --c.Options.arena_bytes; }, KILN_ARENA_TOO_SMALL,
       "forward: arena too small; expected 384 bytes for 1 workers, got 383"},
      {"arena empty", [](Call &c) { c.Options.arena_bytes = 0; }, KILN_ARENA_TOO_SMALL,
       "forward: arena too small; expected 384 bytes for 1 workers, got 0"},
      {"arena for fewer workers", [](Call &c) { c.Options.executor = &TwoWorkers; }, KILN_ARENA_TOO_SMALL,
       "forward: arena too small; expected 576 bytes for 2 workers, got 384"},
      {"index below", [](Call &c) { c.Ids[0] = -1; }, KILN_INDEX_OUT_OF_RANGE,
       "forward: \"ids\" out of range; expected [0, 4], got -1 at element 0"},
      {"index above", [](Call &c) { c.Ids[4] = 5; }, KILN_INDEX_OUT_OF_RANGE,
       "forward: \"ids\" out of range; expected [0, 4], got 5 at element 4"},
      {"index least", [](Call &c) { c.Ids[2] = INT32_MIN; }, KILN_INDEX_OUT_OF_RANGE,
       "forward: \"ids\" out of range; expected [0, 4], got -2147483648 at element 2"},
      {"words of a later version", [](Call &c) { c.Options.reserved[0] = &c; }, KILN_INVALID_ARGUMENT,
       "forward: reserved field set; expected null, got a pointer in field 0"},
      {"a stream on a CPU", [](Call &c) { c.Options.stream = reinterpret_cast<void *>(0x10); }, KILN_INVALID_ARGUMENT,
       "forward: not for a CPU; expected a null stream and memory 0, got 0x10 and 0"},
      {"device pointers on a CPU", [](Call &c) { c.Options.memory = KILN_DEVICE_POINTERS; }, KILN_INVALID_ARGUMENT,
       "forward: not for a CPU; expected a null stream and memory 0, got (nil) and 1"},
      {"no such entry", [](Call &c) { c.Entry = 2; }, KILN_INTERNAL_ERROR,
       "model \"tiny\": no such entry; expected one below 2, got 2"},
      {"body fails", [](Call &c) { c.Entry = 1; }, KILN_INTERNAL_ERROR,
       "broken of model \"tiny\": wrong result; expected 0, got 7"},
      {"no model",
       [](Call &c) {
         kiln_destroy(c.Model);
         c.Model = nullptr;
       },
       KILN_NULL_ARGUMENT, "entry: null given; expected a model"},
      {"no weights",
       [](Call &c) {
         kiln_destroy(c.Model);
         ASSERT_EQ(kiln_create(nullptr, &c.Model, nullptr), KILN_OK);
       },
       KILN_WEIGHTS_NOT_BOUND, "forward: no weights; expected bound ones"},
      {"weights that failed to bind",
       [](Call &c) {
         kiln_destroy(c.Model);
         ASSERT_EQ(kiln_create(nullptr, &c.Model, nullptr), KILN_OK);
         ASSERT_EQ(kiln_bind_weights_from_memory(c.Model, "", 0, nullptr), KILN_FILE_MALFORMED);
       },
       KILN_WEIGHTS_NOT_BOUND, "forward: no weights; expected bound ones"},
  };
  for (const auto &test : cases) {
    Call call;
    test.Spoil(call);
    EXPECT_EQ(call.run(), test.Status) << test.What;
    EXPECT_EQ(call.Error.status, test.Status) << test.What;
    EXPECT_EQ(call.Error.message, test.Message) << test.What;
    EXPECT_EQ(call.Rows, std::vector<float>(call.Rows.size(), -1)) << test.What;
    // The same without an error struct.
    call.Options.error = nullptr;
    EXPECT_EQ(call.run(), test.Status) << test.What;
  }
  Call call;
  EXPECT_EQ(kiln_run(call.Model, nullptr, 0, call.Extents, call.Arguments), KILN_NULL_ARGUMENT);
}

// Index checks cover the product of two extents, and a limit may depend on an extent: lengths of at most `tokens`.
TEST(Run, IndexLimitsMayDependOnExtents) {
  const kiln_symbol_t symbols[] = {{"batch", 1, 8, 0, 0}, {"tokens", 1, 8, 0, 0}};
  const kiln_extent_t none = {0, 0, 0, {-1, -1, -1, -1}};
  const kiln_argument_t arguments[] = {
      {"ids",
       KILN_I32,
       2,
       {{0, 1, 0, {0, -1, -1, -1}}, {1, 2, 0, {1, -1, -1, -1}}},
       0,
       1,
       -1,
       {3, 0, 0, {-1, -1, -1, -1}}},
      {"lengths", KILN_I32, 1, {{0, 1, 0, {0, -1, -1, -1}}}, 0, 1, 1, {1, 1, 0, {1, -1, -1, -1}}},
      {"pairs", KILN_I32, 1, {{0, 1, 0, {0, 1, -1, -1}}}, 0, 0, 0, none}};
  BodyModel body([](const kiln_frame_t *) { return 0; }, 0, 0, 0);
  body.Entry = entryOf("forward", symbols, arguments, 2, 3);
  GuardedMemory arena(body.arenaBytes(1));
  kiln_error_t error;
  const kiln_call_t call = {arena.data(), arena.size(), nullptr, &error};
  const int64_t extents[] = {2, 3};
  std::vector<int32_t> ids(2 * 7, -1), lengths = {1, 3}, pairs(6, 99);
  void *const given[] = {ids.data(), lengths.data(), pairs.data()};
  EXPECT_EQ(kiln_run(body.Model, &call, 0, extents, given), KILN_OK) << error.message;
  ids.back() = 3;
  EXPECT_EQ(kiln_run(body.Model, &call, 0, extents, given), KILN_INDEX_OUT_OF_RANGE);
  EXPECT_STREQ(error.message, "forward: \"ids\" out of range; expected [-1, 2], got 3 at element 13");
  ids.back() = 2;
  lengths[1] = 4;
  EXPECT_EQ(kiln_run(body.Model, &call, 0, extents, given), KILN_INDEX_OUT_OF_RANGE);
  EXPECT_STREQ(error.message, "forward: \"lengths\" out of range; expected [1, 3], got 4 at element 1");
}

// An extent is a number plus a multiple of one or two dynamic dimensions, or the sum of two of these.
TEST(Run, ExtentsAreSumsOfProducts) {
  const int64_t extents[] = {2, 3, 5};
  auto valueOf = [&](const kiln_extent_t &extent) { return kiln_extent_value(&extent, extents); };
  EXPECT_EQ(valueOf({7, 0, 0, {-1, -1, -1, -1}}), 7);
  EXPECT_EQ(valueOf({-1, 4, 0, {1, -1, -1, -1}}), 11);
  EXPECT_EQ(valueOf({1, 10, 100, {0, -1, 2, -1}}), 521);
  EXPECT_EQ(valueOf({0, 1, -2, {0, 1, 1, 2}}), 6 - 30);
}

// A dynamic dimension may have another one as its lower bound, which is declared before or after it.
TEST(Run, ExtentsMayDependOnEachOther) {
  const kiln_symbol_t symbols[] = {{"context", 1, 8, 2, 0}, {"tokens", 1, 6, 0, 0}, {"window", 1, 9, 1, 0}};
  BodyModel body([](const kiln_frame_t *) { return 0; }, 0, 0, 0);
  body.Entry = entryOf("forward", symbols, nullptr, 3, 0);
  GuardedMemory arena(body.arenaBytes(1));
  kiln_error_t error;
  const kiln_call_t call = {arena.data(), arena.size(), nullptr, &error};
  auto run = [&](int64_t context, int64_t tokens, int64_t window) {
    const int64_t extents[] = {context, tokens, window};
    return kiln_run(body.Model, &call, 0, extents, nullptr);
  };
  EXPECT_EQ(run(4, 4, 4), KILN_OK) << error.message;
  EXPECT_EQ(run(8, 1, 9), KILN_OK) << error.message;
  EXPECT_EQ(run(3, 4, 9), KILN_EXTENT_OUT_OF_RANGE);
  EXPECT_STREQ(error.message, "forward: context too small; expected at least tokens, which is 4, got 3");
  EXPECT_EQ(run(5, 4, 4), KILN_EXTENT_OUT_OF_RANGE);
  EXPECT_STREQ(error.message, "forward: window too small; expected at least context, which is 5, got 4");
}

// The body fills its planned memory, worker 0's table, and every worker's task scratch; the arena ends at a guard page.
TEST(Run, ArenaOfExactlyTheStatedBytesIsEnough) {
  constexpr uint64_t PlanBytes = 1000, TableBytes = 500, BlockBytes = 100, Blocks = 3;
  constexpr uint64_t TaskBytes = Blocks * KILN_SCRATCH_BLOCK_BYTES(BlockBytes);
  BodyModel body(
      [](const kiln_frame_t *frame) {
        std::memset(frame->arena, 1, PlanBytes);
        void *table = kiln_malloc(frame->worker, TableBytes);
        if (!table)
          return 3;
        std::memset(table, 3, TableBytes);
        const int result = kiln_do_par_for(
            frame->worker,
            [](void *context, int, uint8_t *) {
              void *blocks[Blocks];
              for (void *&block : blocks) {
                block = kiln_malloc(context, BlockBytes);
                if (!block || reinterpret_cast<uintptr_t>(block) % KILN_ARENA_ALIGNMENT != 0)
                  return 1;
                std::memset(block, 2, (BlockBytes + 63) / 64 * 64);
              }
              if (kiln_malloc(context, 0))
                return 2;
              for (int i = Blocks; i-- > 0;)
                kiln_free(context, blocks[i]);
              return 0;
            },
            0, 100, nullptr);
        kiln_free(frame->worker, table);
        return result;
      },
      PlanBytes, KILN_SCRATCH_BLOCK_BYTES(TableBytes) + TaskBytes, TaskBytes);
  for (uint32_t workers : {1u, 2u, 7u}) {
    kiln_pool_t *pool;
    ASSERT_EQ(kiln_pool_create(workers, &pool, nullptr), KILN_OK);
    GuardedMemory arena(body.arenaBytes(workers));
    EXPECT_EQ(arena.size(), 1024 + 576 + workers * (3 * 192 + 64));
    kiln_error_t error;
    const kiln_call_t call = {arena.data(), arena.size(), kiln_pool_executor(pool), &error};
    EXPECT_EQ(kiln_run(body.Model, &call, 0, nullptr, nullptr), KILN_OK) << error.message;
    EXPECT_TRUE(arena.isFrontIntact());
    kiln_pool_destroy(pool);
  }
}

} // namespace
