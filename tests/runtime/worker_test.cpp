// SPDX-License-Identifier: Apache-2.0
// The hooks of generated kernels: scratch memory and parallel loops.
#include "support.h"

#include <array>
#include <atomic>
#include <climits>
#include <gtest/gtest.h>

namespace {

using namespace kiln_test;

struct Scratch {
  GuardedMemory Memory;
  kiln_worker_t Worker = {};
  explicit Scratch(size_t bytes) : Memory(bytes) {
    Worker.workers = &Worker;
    Worker.top = Memory.data();
    Worker.end = Memory.data() + bytes;
  }
};

TEST(Scratch, IsAStack) {
  Scratch scratch(1024);
  char *const bottom = scratch.Worker.top;
  void *first = kiln_malloc(&scratch.Worker, 1);
  void *second = kiln_malloc(&scratch.Worker, 65);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(scratch.Worker.top, bottom + KILN_SCRATCH_BLOCK_BYTES(1) + KILN_SCRATCH_BLOCK_BYTES(65));
  kiln_free(&scratch.Worker, second);
  EXPECT_EQ(kiln_malloc(&scratch.Worker, 3), second);
  kiln_free(&scratch.Worker, second);
  kiln_free(&scratch.Worker, first);
  kiln_free(&scratch.Worker, nullptr);
  EXPECT_EQ(scratch.Worker.top, bottom);
  EXPECT_EQ(scratch.Worker.last, nullptr);
}

// Halide frees a block after its last use: a block above it may live on, and must not be allocated again.
TEST(Scratch, BlocksMayBeFreedInAnyOrder) {
  const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const auto &order : orders) {
    Scratch scratch(3 * KILN_SCRATCH_BLOCK_BYTES(64));
    char *const bottom = scratch.Worker.top;
    char *blocks[3];
    for (int i = 0; i < 3; ++i) {
      blocks[i] = static_cast<char *>(kiln_malloc(&scratch.Worker, 64));
      ASSERT_NE(blocks[i], nullptr);
      std::memset(blocks[i], i, 64);
    }
    EXPECT_EQ(kiln_malloc(&scratch.Worker, 0), nullptr);
    bool isAlive[3] = {true, true, true};
    for (int freed : order) {
      kiln_free(&scratch.Worker, blocks[freed]);
      isAlive[freed] = false;
      if (void *again = kiln_malloc(&scratch.Worker, 64)) {
        std::memset(again, 0xEE, 64);
        kiln_free(&scratch.Worker, again);
      }
      for (int i = 0; i < 3; ++i) {
        if (isAlive[i]) {
          EXPECT_EQ(std::string(blocks[i], 64), std::string(64, static_cast<char>(i)));
        }
      }
    }
    EXPECT_EQ(scratch.Worker.top, bottom);
  }
}

TEST(Scratch, ExhaustionIsNull) {
  Scratch scratch(256);
  for (size_t bytes : {SIZE_MAX, SIZE_MAX - 63, SIZE_MAX - 127, SIZE_MAX / 2, size_t{257}, size_t{256}, size_t{193}})
    EXPECT_EQ(kiln_malloc(&scratch.Worker, bytes), nullptr) << bytes;
  EXPECT_NE(kiln_malloc(&scratch.Worker, 192), nullptr);
  Scratch none(0);
  EXPECT_EQ(kiln_malloc(&none.Worker, 0), nullptr);
}

/// Records how often each index ran, and on which workers.
struct Record {
  kiln_worker_t *Workers;
  int Min;
  std::atomic<int> Runs[64] = {};
  std::atomic<unsigned> WorkersSeen = 0;
  int FailAt = INT_MIN;
  int NestedRuns = 0;
};

int record(void *context, int index, uint8_t *closure) {
  auto &self = *reinterpret_cast<Record *>(closure);
  ++self.Runs[index - self.Min];
  self.WorkersSeen |= 1u << (static_cast<kiln_worker_t *>(context) - self.Workers);
  return index == self.FailAt ? 40 + index : 0;
}

// An executor that runs the tasks on the calling thread in reverse order, with the workers in turn.
void dealOut(void *self, uint32_t count, void (*task)(void *, uint32_t, uint32_t), void *context) {
  uint32_t workers = *static_cast<uint32_t *>(self);
  for (uint32_t i = count; i-- > 0;)
    task(context, i, i % workers);
}

class Loop : public testing::Test {
protected:
  uint32_t Count = 3;
  kiln_executor_t Executor = {&Count, 3, dealOut};
  kiln_worker_t Workers[3] = {};
  Record Seen = {Workers, 0};

  void SetUp() override {
    for (kiln_worker_t &worker : Workers)
      worker.workers = Workers;
    Workers[0].executor = &Executor;
  }
  int loop(int min, int size) {
    Seen.Min = min;
    return kiln_do_par_for(&Workers[0], record, min, size, reinterpret_cast<uint8_t *>(&Seen));
  }
  void expectRuns(int size) {
    for (int i = 0; i < 64; ++i)
      EXPECT_EQ(Seen.Runs[i], i < size ? 1 : 0) << i;
  }
};

TEST_F(Loop, RunsEveryIndexOnceOnAllWorkers) {
  EXPECT_EQ(loop(-20, 41), 0);
  expectRuns(41);
  EXPECT_EQ(Seen.WorkersSeen, 7u);
  EXPECT_EQ(Workers[0].executor, &Executor) << "the next loop is parallel again";
}

TEST_F(Loop, EmptyAndSingleLoopsStayOnTheCaller) {
  EXPECT_EQ(loop(5, 0), 0);
  EXPECT_EQ(loop(5, -3), 0);
  expectRuns(0);
  Executor.parallel_for = nullptr;
  EXPECT_EQ(loop(5, 1), 0);
  expectRuns(1);
  EXPECT_EQ(Seen.WorkersSeen, 1u);
}

TEST_F(Loop, IsSerialWithoutAnExecutor) {
  Workers[0].executor = nullptr;
  EXPECT_EQ(loop(2, 10), 0);
  expectRuns(10);
  EXPECT_EQ(Seen.WorkersSeen, 1u);
}

TEST_F(Loop, IsBackwardOnRequest) {
  Workers[0].executor = nullptr;
  Seen.FailAt = 4;
  EXPECT_EQ(loop(2, 10), 44);
  expectRuns(3); // 2, 3, 4
  Workers[0].is_backward = 1;
  EXPECT_EQ(loop(2, 10), 44);
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(Seen.Runs[i], i == 2 ? 2 : 1) << i; // plus 11 to 4
}

TEST_F(Loop, ReturnsTheResultOfAFailedTask) {
  Seen.FailAt = 7;
  EXPECT_EQ(loop(0, 20), 47);
  Workers[0].executor = nullptr;
  EXPECT_EQ(loop(0, 20), 47);
  Workers[0].executor = &Executor;
  Seen.FailAt = INT_MIN;
  EXPECT_EQ(loop(0, 20), 0) << "a failure is not remembered";
}

// Large copies are split among the workers, with or without a remainder; rows with a stride are not.
TEST_F(Loop, CopiesRows) {
  constexpr size_t part = size_t{1} << 19;
  for (const kiln_executor_t *executor : std::array<const kiln_executor_t *, 2>{&Executor, nullptr})
    for (auto [rows, rowBytes, stride] : {std::array<size_t, 3>{1, 2 * part, 0},
                                          {1, 3 * part + 1, 0},
                                          {7, part / 2 + 3, part / 2 + 3},
                                          {3, part + 5, part + 9},
                                          {2, 10, 30}}) {
      Workers[0].executor = executor;
      const size_t taken = (rows - 1) * stride + rowBytes;
      std::vector<unsigned char> from(taken), to(rows * rowBytes + 1, 255);
      for (size_t i = 0; i < taken; ++i)
        from[i] = static_cast<unsigned char>(i * 7 + i / 251);
      kiln_copy_rows(&Workers[0], to.data(), from.data(), rows, rowBytes, stride);
      for (size_t row = 0; row < rows; ++row)
        EXPECT_EQ(std::memcmp(&to[row * rowBytes], &from[row * stride], rowBytes), 0) << rows << " rows, " << row;
      EXPECT_EQ(to.back(), 255);
      EXPECT_EQ(Workers[0].executor, executor);
    }
}

// A task of each worker, including worker 0, runs a nested loop: serially, on the same worker.
TEST_F(Loop, NestedLoopsAreSerial) {
  auto outer = [](void *context, int, uint8_t *closure) -> int {
    auto &seen = *reinterpret_cast<Record *>(closure);
    seen.WorkersSeen = 0;
    int result = kiln_do_par_for(context, record, 0, 8, closure);
    ++seen.NestedRuns;
    return result != 0 || seen.WorkersSeen != 1u << (static_cast<kiln_worker_t *>(context) - seen.Workers);
  };
  EXPECT_EQ(kiln_do_par_for(&Workers[0], outer, 0, 6, reinterpret_cast<uint8_t *>(&Seen)), 0);
  EXPECT_EQ(Seen.NestedRuns, 6);
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(Seen.Runs[i], 6);
}

TEST_F(Loop, WorkerNumbersOutOfRangeFail) {
  Count = 4; // the executor uses a fourth worker that it did not announce
  EXPECT_EQ(loop(0, 8), -1);
  EXPECT_EQ(Seen.Runs[3], 0);
}

// Scratch memory that the caller holds around the loop survives tasks on worker 0.
TEST_F(Loop, TasksContinueOnTheCallersScratch) {
  Scratch scratch(4 * KILN_SCRATCH_BLOCK_BYTES(64));
  Count = 1; // all tasks run on worker 0
  Workers[0].top = scratch.Worker.top;
  Workers[0].end = scratch.Worker.end;
  auto *held = static_cast<char *>(kiln_malloc(&Workers[0], 64));
  std::memset(held, 'h', 64);
  char *const top = Workers[0].top;
  auto task = [](void *context, int, uint8_t *) {
    void *block = kiln_malloc(context, 64);
    if (!block)
      return 1;
    std::memset(block, 't', 64);
    kiln_free(context, block);
    return 0;
  };
  EXPECT_EQ(kiln_do_par_for(&Workers[0], task, 0, 9, nullptr), 0);
  EXPECT_EQ(std::string(held, 64), std::string(64, 'h'));
  EXPECT_EQ(Workers[0].top, top);
}

} // namespace
