// SPDX-License-Identifier: Apache-2.0
//
// The NCCL adapter on a fake NCCL (fake_nccl/), with threads as ranks: every kind and element type, stream order, lost
// ranks, errors of NCCL and CUDA, and misuse; with blocking and with nonblocking comms.
#include "kiln/communicators/nccl.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

#include "fake_nccl/fake_nccl.h"

namespace kiln::test {
namespace {

constexpr size_t bytesOf[] = {4, 2, 2, 4, 1, 1}; // KILN_F32 .. KILN_BOOL

struct Memory { // device memory
  explicit Memory(size_t bytes) : bytes(bytes) {
    cudaMalloc(&data, bytes);
    std::memset(data, 0x55, bytes);
  }
  ~Memory() { cudaFree(data); }
  Memory(const Memory &) = delete;
  char *at(size_t offset) const { return static_cast<char *>(data) + offset; }
  void *data = nullptr;
  size_t bytes;
};

/// Returns the input of a rank at an index: a small integer; for bool, 0 or 1.
int valueOf(uint32_t rank, uint64_t index, uint32_t element) {
  const auto value = static_cast<int>((rank * 7 + index * 5) % 13) - 6;
  return element == KILN_BOOL ? value & 1 : value;
}

void put(void *memory, uint32_t element, uint64_t at, int value) {
  const auto real = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &real, sizeof bits);
  if (element == KILN_F16)
    bits = value ? (bits >> 16 & 0x8000) | (((bits & 0x7FFFFFFF) >> 13) - (112 << 10)) : 0;
  else if (element == KILN_BF16)
    bits >>= 16;
  else if (element != KILN_F32)
    bits = static_cast<uint32_t>(value);
  std::memcpy(static_cast<char *>(memory) + at * bytesOf[element], &bits, bytesOf[element]);
}

/// One rank: a thread with a stream and a communicator.
struct Rank {
  Rank(uint32_t rank, uint32_t size, const ncclUniqueId &id, bool isBlocking, uint32_t deadline_ms) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = isBlocking;
    EXPECT_EQ(ncclCommInitRankConfig(&comm, static_cast<int>(size), id, static_cast<int>(rank), &config),
              isBlocking ? ncclSuccess : ncclInProgress);
    cudaStreamCreate(&stream);
    ranks = kiln_nccl_communicator(&nccl, comm, deadline_ms);
    EXPECT_EQ(ranks.rank, rank);
    EXPECT_EQ(ranks.size, size);
  }
  ~Rank() {
    kiln_nccl_release(&nccl);
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess); // no error is left
  }
  Rank(const Rank &) = delete;

  kiln_status_t begin(kiln_collective_kind_t kind, uint32_t element, const void *from, void *to, uint64_t elements,
                      uint32_t peer = 0) {
    const kiln_collective_t what = {kind, element, from, to, elements, peer, stream};
    return ranks.begin(ranks.self, &what, &error);
  }
  kiln_status_t finish() { return ranks.finish(ranks.self, &error); }
  kiln_status_t wait() { return kiln_nccl_wait(&nccl, stream, &error); }
  kiln_status_t reduce(const Memory &memory, uint64_t elements = 1) {
    const kiln_status_t status = begin(KILN_ALL_REDUCE, KILN_F32, memory.data, memory.data, elements);
    return status ? status : finish();
  }
  /// Enqueues `work` in the stream.
  void then(std::function<void()> work) {
    cudaLaunchHostFunc(
        stream,
        [](void *context) {
          (*static_cast<std::function<void()> *>(context))();
          delete static_cast<std::function<void()> *>(context);
        },
        new std::function<void()>(std::move(work)));
  }
  void fill(char *memory, uint32_t element, uint64_t elements) {
    then([=, rank = ranks.rank] {
      for (uint64_t i = 0; i < elements; ++i)
        put(memory, element, i, valueOf(rank, i, element));
    });
  }

  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  kiln_nccl_t nccl;
  kiln_communicator_t ranks;
  kiln_error_t error{};
};

void runRanks(uint32_t size, bool isBlocking, uint32_t deadline_ms, const std::function<void(Rank &)> &work) {
  const int before = violations();
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      Rank made(rank, size, id, isBlocking, deadline_ms);
      work(made);
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(violations(), before);
}

double secondsOf(const std::function<void()> &work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void sleep(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

/// Expects in `memory` the values of the function wanted(part, index in the part).
void expectParts(const char *memory, uint32_t element, uint64_t parts, uint64_t elements,
                 const std::function<int(uint32_t, uint64_t)> &wanted) {
  std::vector<char> all(parts * elements * bytesOf[element]);
  for (uint64_t i = 0; i < parts * elements; ++i)
    put(all.data(), element, i, wanted(static_cast<uint32_t>(i / elements), i % elements));
  EXPECT_EQ(std::memcmp(memory, all.data(), all.size()), 0) << "of " << elements << " elements of type " << element;
}

/// Enqueues all collectives in the stream before any of them needs to have run.
void tryKinds(Rank &rank, uint32_t element, uint64_t elements) {
  const uint32_t size = rank.ranks.size, self = rank.ranks.rank, before = (self + size - 1) % size;
  const size_t part = elements * bytesOf[element];
  const bool isSummed = element != KILN_BOOL;
  Memory summed(part), all(size * part), scattered(part), gathered(size * part), own(part), exchanged(size * part),
      received(part);
  auto value = [=](uint32_t of, uint64_t index) { return valueOf(of, index, element); };
  auto sum = [=](uint64_t index) {
    int result = 0;
    for (uint32_t each = 0; each < size; ++each)
      result += value(each, index);
    return result;
  };
  auto did = [&](kiln_status_t begun) { EXPECT_EQ(begun ? begun : rank.finish(), KILN_OK) << rank.error.message; };
  rank.fill(summed.at(0), element, elements);
  rank.fill(all.at(0), element, size * elements);
  rank.fill(own.at(0), element, elements);
  if (isSummed) {
    did(rank.begin(KILN_ALL_REDUCE, element, summed.data, summed.data, elements));
    did(rank.begin(KILN_REDUCE_SCATTER, element, all.data, scattered.data, elements));
  }
  did(rank.begin(KILN_EXCHANGE, element, all.data, exchanged.data, elements));
  // Around a ring: each rank sends before it receives. A collective of another kind follows; all three are begun before
  // one is finished.
  EXPECT_EQ(rank.begin(KILN_SEND, element, own.data, nullptr, elements, (self + 1) % size), KILN_OK);
  EXPECT_EQ(rank.begin(KILN_RECEIVE, element, nullptr, received.data, elements, before), KILN_OK);
  did(rank.begin(KILN_ALL_GATHER, element, own.data, gathered.data, elements));
  EXPECT_EQ(rank.finish(), KILN_OK);
  EXPECT_EQ(rank.finish(), KILN_OK);
  if (isSummed) // in place: the result overwrites the rank's part of the input
    did(rank.begin(KILN_REDUCE_SCATTER, element, all.data, all.at(self * part), elements));
  EXPECT_EQ(rank.wait(), KILN_OK) << rank.error.message;
  if (isSummed) {
    expectParts(all.at(self * part), element, 1, elements,
                [&](uint32_t, uint64_t i) { return sum(self * elements + i); });
    expectParts(summed.at(0), element, 1, elements, [&](uint32_t, uint64_t i) { return sum(i); });
    expectParts(scattered.at(0), element, 1, elements, [&](uint32_t, uint64_t i) { return sum(self * elements + i); });
  }
  expectParts(gathered.at(0), element, size, elements, value);
  expectParts(exchanged.at(0), element, size, elements,
              [&](uint32_t of, uint64_t i) { return value(of, self * elements + i); });
  expectParts(received.at(0), element, 1, elements, [&](uint32_t, uint64_t i) { return value(before, i); });
}

TEST(RanksNccl, SumsAndMovesEachKindAndType) {
  for (uint32_t size : {2, 3, 4})
    for (bool isBlocking : {false, true})
      runRanks(size, isBlocking, 20000, [](Rank &rank) {
        for (uint64_t elements : {1, 3, 255, 4099})
          for (uint32_t element = KILN_F32; element <= KILN_BOOL; ++element)
            tryKinds(rank, element, elements);
      });
}

TEST(RanksNccl, FinishesInTheOrderOfTheStream) {
  runRanks(2, false, 20000, [](Rank &rank) {
    Memory value(4);
    std::atomic<bool> mayGoOn = false, hasGoneOn = false;
    EXPECT_EQ(rank.reduce(value), KILN_OK); // connects the ranks
    rank.then([&] {
      while (!mayGoOn)
        std::this_thread::yield();
      hasGoneOn = true;
    });
    rank.fill(value.at(0), KILN_F32, 1);
    EXPECT_EQ(rank.reduce(value), KILN_OK);
    EXPECT_FALSE(hasGoneOn);
    mayGoOn = true;
    EXPECT_EQ(rank.wait(), KILN_OK);
    expectParts(value.at(0), KILN_F32, 1, 1,
                [](uint32_t, uint64_t) { return valueOf(0, 0, KILN_F32) + valueOf(1, 0, KILN_F32); });
  });
}

TEST(RanksNccl, TakesAnyNumberAtATime) {
  runRanks(2, false, 20000, [](Rank &rank) {
    constexpr uint32_t count = 3 * KILN_NCCL_OUTSTANDING + 5;
    const uint32_t other = 1 - rank.ranks.rank;
    Memory value(4), received(4 * count);
    rank.fill(value.at(0), KILN_F32, 1);
    for (uint32_t i = 0; i < count; ++i)
      EXPECT_EQ(rank.begin(KILN_ALL_GATHER, KILN_F32, value.data, received.data, 1), KILN_OK);
    for (uint32_t i = 0; i < count; ++i)
      EXPECT_EQ(rank.finish(), KILN_OK);
    for (uint32_t i = 0; i < count; ++i) {
      EXPECT_EQ(rank.begin(KILN_SEND, KILN_F32, value.data, nullptr, 1, other), KILN_OK);
      EXPECT_EQ(rank.begin(KILN_RECEIVE, KILN_F32, nullptr, received.at(i * sizeof(float)), 1, other), KILN_OK);
    }
    for (uint32_t i = 0; i < 2 * count; ++i)
      EXPECT_EQ(rank.finish(), KILN_OK);
    EXPECT_EQ(rank.wait(), KILN_OK) << rank.error.message;
    expectParts(received.at(0), KILN_F32, count, 1, [=](uint32_t, uint64_t) { return valueOf(other, 0, KILN_F32); });
  });
}

constexpr char late[] = "a rank did not take part within 300 ms";

/// Expects that the communicator is lost, that every call says so, and that the stream completes.
void expectLost(Rank &rank, const char *words, kiln_status_t wanted = KILN_RANK_LOST) {
  Memory value(4);
  EXPECT_EQ(rank.error.status, wanted);
  EXPECT_STREQ(rank.error.message, words);
  for (const std::function<kiln_status_t()> &call : {std::function<kiln_status_t()>([&] { return rank.reduce(value); }),
                                                     {[&] { return rank.finish(); }},
                                                     {[&] { return rank.wait(); }}}) {
    rank.error = {};
    EXPECT_EQ(call(), wanted);
    EXPECT_STREQ(rank.error.message, words);
  }
  EXPECT_EQ(rank.ranks.finish(rank.ranks.self, nullptr), wanted);
  EXPECT_EQ(cudaStreamSynchronize(rank.stream), cudaSuccess);
}

TEST(RanksNccl, TellsWithinASecondOfTheDeadlineThatARankIsLost) {
  for (uint32_t size : {2, 4}) {
    std::atomic<uint32_t> told = 0;
    runRanks(size, false, 20000, [&](Rank &rank) {
      Memory value(4);
      EXPECT_EQ(rank.reduce(value), KILN_OK);
      EXPECT_EQ(rank.wait(), KILN_OK);
      rank.nccl.deadline_ms = 300;
      kiln_status_t status = KILN_OK;
      if (rank.ranks.rank + 1 < size) { // the last rank takes no part
        EXPECT_EQ(rank.reduce(value), KILN_OK);
        EXPECT_LT(secondsOf([&] { status = rank.wait(); }), 1.3);
        EXPECT_EQ(status, KILN_RANK_LOST);
        expectLost(rank, late);
        ++told;
      }
      while (told + 1 < size)
        sleep(1);
    });
  }
}

/// A rank that never connects. On a blocking comm NCCL itself does not return in this case.
TEST(RanksNccl, TellsThatARankIsLostWhichNeverCame) {
  std::atomic<bool> isTold = false;
  runRanks(2, false, 300, [&](Rank &rank) {
    Memory value(4);
    kiln_status_t status = KILN_OK;
    if (rank.ranks.rank == 0) {
      EXPECT_LT(secondsOf([&] { status = rank.reduce(value); }), 1.3);
      EXPECT_EQ(status, KILN_RANK_LOST);
      expectLost(rank, late);
      isTold = true;
    }
    while (!isTold)
      sleep(1);
  });
}

TEST(RanksNccl, TellsThatARankIsLostWhichDidNotReceive) {
  std::atomic<bool> isTold = false;
  runRanks(2, true, 300, [&](Rank &rank) {
    Memory value(4);
    if (rank.ranks.rank == 0) {
      EXPECT_EQ(rank.begin(KILN_SEND, KILN_F32, value.data, nullptr, 1, 1), KILN_OK);
      EXPECT_EQ(rank.wait(), KILN_RANK_LOST); // without finish
      expectLost(rank, late);
      isTold = true;
    }
    while (!isTold)
      sleep(1);
  });
}

TEST(RanksNccl, CountsTheDeadlineFromItsTurnInTheStream) {
  runRanks(2, false, 300, [](Rank &rank) {
    Memory value(4);
    for (int round = 0; round < 2; ++round) {
      rank.then([] { sleep(700); }); // simulates a long kernel
      EXPECT_EQ(rank.reduce(value), KILN_OK);
    }
    rank.then([] { sleep(700); });
    EXPECT_EQ(rank.wait(), KILN_OK) << rank.error.message;
  });
}

TEST(RanksNccl, EndsTheStreamOfWhoWaitsByOtherMeans) {
  std::atomic<bool> isTold = false;
  runRanks(2, true, 300, [&](Rank &rank) {
    Memory value(4);
    if (rank.ranks.rank == 0) {
      EXPECT_EQ(rank.reduce(value), KILN_OK);
      const double seconds = secondsOf([&] {
        while (cudaStreamQuery(rank.stream) == cudaErrorNotReady) {
          cudaGetLastError();
          rank.ranks.poll(rank.ranks.self);
        }
      });
      EXPECT_LT(seconds, 1.3);
      EXPECT_EQ(rank.reduce(value), KILN_RANK_LOST);
      expectLost(rank, late);
      isTold = true;
    }
    while (!isTold)
      sleep(1);
  });
}

TEST(RanksNccl, TellsWhatFailsAsynchronously) {
  runRanks(2, false, 20000, [](Rank &rank) {
    Memory value(4);
    EXPECT_EQ(rank.reduce(value), KILN_OK);
    EXPECT_EQ(rank.wait(), KILN_OK);
    breakComm(rank.comm, ncclRemoteError, "ib0 is down");
    EXPECT_EQ(rank.wait(), KILN_RANK_LOST);
    expectLost(rank, "NCCL: remote error: ib0 is down");
  });
}

TEST(RanksNccl, TellsErrorsOfCuda) {
  runRanks(2, true, 20000, [](Rank &rank) {
    Memory value(4);
    EXPECT_EQ(rank.reduce(value), KILN_OK);
    cudaStreamSynchronize(rank.stream);
    breakEvents(cudaErrorLaunchFailure);
    EXPECT_EQ(rank.reduce(value), KILN_DEVICE_ERROR);
    EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
    expectLost(rank, "CUDA: unspecified launch failure", KILN_DEVICE_ERROR);
  });
  breakEvents(cudaSuccess);
}

TEST(RanksNccl, RefusesMisuse) {
  auto expect = [](const std::string &words, const std::function<kiln_status_t(Rank &, const Memory &)> &call) {
    runRanks(2, false, 20000, [&](Rank &rank) {
      Memory value(64);
      EXPECT_EQ(call(rank, value), KILN_INVALID_ARGUMENT);
      expectLost(rank, words.c_str(), KILN_INVALID_ARGUMENT);
    });
  };
  expect("NCCL: wrong element type; expected f32, f16, bf16, i32 or i8 to sum", [](Rank &rank, const Memory &value) {
    return rank.begin(KILN_REDUCE_SCATTER, KILN_BOOL, value.data, value.data, 1);
  });
  expect("NCCL: wrong element type; expected f32, f16, bf16, i32, i8 or bool",
         [](Rank &rank, const Memory &value) { return rank.begin(KILN_SEND, KILN_I4, value.data, nullptr, 1, 0); });
  expect("NCCL: buffers of the host; expected those of a GPU, and a stream", [](Rank &rank, const Memory &value) {
    const kiln_collective_t what = {KILN_ALL_REDUCE, KILN_F32, value.data, value.data, 1, 0, nullptr};
    return rank.ranks.begin(rank.ranks.self, &what, &rank.error);
  });
  expect("NCCL: stream is captured; expected one that is not", [](Rank &rank, const Memory &value) {
    capture(rank.stream);
    return rank.begin(KILN_SEND, KILN_F32, value.data, nullptr, 1, 0);
  });
  expect("finish: no collective; expected one that was begun",
         [](Rank &rank, const Memory &) { return rank.finish(); });
  expect("NCCL: invalid argument: what is sent is not on the device", [](Rank &rank, const Memory &value) {
    float onHost = 0;
    return rank.begin(KILN_ALL_REDUCE, KILN_F32, &onHost, value.data, 1);
  });
  expect("NCCL: invalid argument: no such type or peer", [](Rank &rank, const Memory &value) {
    EXPECT_EQ(rank.begin(KILN_SEND, KILN_F32, value.data, nullptr, 1, 7), KILN_OK); // only submitted by finish
    return rank.finish();
  });
  kiln_nccl_t nccl;
  kiln_error_t error;
  const kiln_communicator_t none = kiln_nccl_communicator(&nccl, nullptr, 300);
  EXPECT_EQ(none.finish(none.self, &error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(error.message, "NCCL: null given; expected a communicator of NCCL");
  kiln_nccl_release(&nccl);
}

} // namespace
} // namespace kiln::test
