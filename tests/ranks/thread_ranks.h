// SPDX-License-Identifier: Apache-2.0
//
// Ranks that are threads of one process; copies replace what an MPI adapter does between processes. Sums of f32 and i32
// are added in rank order. The output of a collective is filled with a poison value until the collective is finished,
// so that an early access is detected; writing to a buffer that is being sent is detected too. A rank may be lost; all
// others get the error at their next collective.
#pragma once

#include <algorithm>
#include <atomic>
#include <barrier>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

#include "kiln/runtime.h"

namespace kiln::test {

class ThreadRanks {
public:
  explicit ThreadRanks(uint32_t count) : barrier(count), members(count) {
    for (uint32_t rank = 0; rank < count; ++rank) {
      members[rank].all = this;
      members[rank].rank = rank;
    }
  }

  /// Removes this rank from the group. The rank's own thread calls this function.
  kiln_status_t lose(uint32_t rank, kiln_error_t *error = nullptr) {
    if (error)
      std::snprintf(error->message, sizeof error->message, "a rank is gone");
    if (members[rank].isGone)
      return KILN_RANK_LOST;
    members[rank].isGone = true;
    {
      const std::lock_guard lock(mutex);
      isLost = true;
    }
    isMoved.notify_all();
    barrier.arrive_and_drop();
    return KILN_RANK_LOST;
  }

  kiln_communicator_t communicator(uint32_t rank) {
    return {&members[rank], rank, static_cast<uint32_t>(members.size()), begin, finish, poll};
  }
  /// Calls `work` for each rank, in a separate thread.
  void run(const std::function<void(uint32_t rank)> &work) {
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < members.size(); ++rank)
      threads.emplace_back([&, rank] { work(rank); });
    for (std::thread &thread : threads)
      thread.join();
  }
  /// Counters of rank 0: collectives; bytes that it sent in them, as rings send them; the most collectives that were in
  /// progress at a time; calls of `poll` while a collective was in progress.
  uint64_t collectives = 0, sentBytes = 0, mostBegun = 0, polls = 0;
  /// If true, a send completes when its receive has begun, as with large messages in MPI; otherwise it completes at
  /// once.
  bool waitsForReceipt = false;

private:
  struct Posted {
    kiln_collective_t what;
    std::vector<char> input;
    uint64_t number = 0; // of a send: its number among the messages to this peer
  };
  struct Messages {
    std::queue<std::vector<char>> waiting;
    uint64_t sent = 0, awaited = 0; // so far
  };
  struct Member {
    ThreadRanks *all;
    uint32_t rank;
    std::deque<Posted> begun;
    bool isGone = false;
  };

  static constexpr int poison = 0xA5;

  static uint64_t partBytes(const kiln_collective_t &what) {
    constexpr uint64_t sizes[] = {4, 2, 2, 4, 1, 1};
    return what.elements * sizes[what.element];
  }
  bool isOfParts(const kiln_collective_t &what) const {
    return what.kind == KILN_REDUCE_SCATTER || what.kind == KILN_EXCHANGE;
  }
  /// Whether a reduce-scatter is in place: each part of the result overwrites that part of the input, and the rest of
  /// the input is no longer needed.
  static bool isScattered(uint32_t rank, const kiln_collective_t &what) {
    return what.kind == KILN_REDUCE_SCATTER && what.to == static_cast<const char *>(what.from) + rank * partBytes(what);
  }
  /// Returns the memory that a collective writes.
  static char *written(uint32_t rank, const kiln_collective_t &what) {
    return static_cast<char *>(what.to) - (isScattered(rank, what) ? rank * partBytes(what) : 0);
  }
  uint64_t outputBytes(uint32_t rank, const kiln_collective_t &what) const {
    if (what.kind == KILN_SEND)
      return 0;
    const bool isOfAll = what.kind == KILN_ALL_GATHER || what.kind == KILN_EXCHANGE || isScattered(rank, what);
    return partBytes(what) * (isOfAll ? members.size() : 1);
  }

  static kiln_status_t begin(void *self, const kiln_collective_t *what, kiln_error_t *error) {
    auto &[all, rank, begun, isGone] = *static_cast<Member *>(self);
    const bool isInPlace = what->kind == KILN_ALL_REDUCE || what->kind == KILN_RECEIVE;
    const auto *from = static_cast<const char *>(isInPlace ? what->to : what->from);
    if (isGone)
      return all->lose(rank, error);
    const bool isSum = what->kind == KILN_ALL_REDUCE || what->kind == KILN_REDUCE_SCATTER;
    if (isSum && what->element != KILN_F32 && what->element != KILN_I32) {
      std::snprintf(error->message, sizeof error->message, "threads: wrong element type; expected f32 or i32 to sum");
      return KILN_INVALID_ARGUMENT;
    }
    begun.push_back({*what, {from, from + partBytes(*what) * (all->isOfParts(*what) ? all->members.size() : 1)}});
    if (what->kind == KILN_RECEIVE)
      all->await(rank, *what);
    if (what->kind == KILN_SEND)
      begun.back().number = all->send(rank, begun.back());
    else
      std::memset(all->written(rank, *what), poison, all->outputBytes(rank, *what));
    if (rank == 0)
      all->mostBegun = std::max<uint64_t>(all->mostBegun, begun.size());
    return KILN_OK;
  }

  static kiln_status_t finish(void *self, kiln_error_t *error) {
    auto &[all, rank, begun, isGone] = *static_cast<Member *>(self);
    if (isGone)
      return all->lose(rank, error);
    const kiln_collective_t what = begun.front().what;
    if (what.kind == KILN_SEND || what.kind == KILN_RECEIVE) {
      const kiln_status_t status =
          what.kind == KILN_SEND ? all->finishSend(rank, begun.front(), error) : all->receive(rank, what);
      begun.pop_front();
      return status == KILN_RANK_LOST ? all->lose(rank, error) : status;
    }
    const char *output = written(rank, what);
    const bool isWritten = std::any_of(output, output + all->outputBytes(rank, what),
                                       [](char byte) { return static_cast<unsigned char>(byte) != poison; });
    all->barrier.arrive_and_wait(); // all have begun it
    if (all->isLost)
      return all->lose(rank, error);
    const std::vector<char> result = all->result(rank);
    all->barrier.arrive_and_wait(); // all have read
    std::memcpy(what.to, result.data(), result.size());
    if (rank == 0)
      all->count(what);
    begun.pop_front();
    if (isWritten)
      std::snprintf(error->message, sizeof error->message, "somebody wrote where a collective does");
    return isWritten ? KILN_INTERNAL_ERROR : KILN_OK;
  }

  static void poll(void *self) {
    const auto &[all, rank, begun, isGone] = *static_cast<Member *>(self);
    all->polls += rank == 0 && !begun.empty();
  }

  /// Keeps the message until it is received. Returns how many messages this rank has sent to the peer.
  uint64_t send(uint32_t rank, const Posted &own) {
    const std::lock_guard lock(mutex);
    Messages &messages = between[{rank, own.what.peer}];
    messages.waiting.push(own.input);
    isMoved.notify_all();
    return ++messages.sent;
  }
  void await(uint32_t rank, const kiln_collective_t &what) {
    const std::lock_guard lock(mutex);
    ++between[{what.peer, rank}].awaited;
    isMoved.notify_all();
  }
  kiln_status_t finishSend(uint32_t rank, const Posted &own, kiln_error_t *error) {
    std::unique_lock lock(mutex);
    Messages &messages = between[{rank, own.what.peer}];
    isMoved.wait(lock, [&] { return isLost || !waitsForReceipt || messages.awaited >= own.number; });
    if (waitsForReceipt && messages.awaited < own.number)
      return KILN_RANK_LOST;
    if (std::memcmp(own.what.from, own.input.data(), own.input.size()) == 0)
      return KILN_OK;
    std::snprintf(error->message, sizeof error->message, "somebody wrote to what was being sent");
    return KILN_INTERNAL_ERROR;
  }
  kiln_status_t receive(uint32_t rank, const kiln_collective_t &what) {
    std::unique_lock lock(mutex);
    Messages &messages = between[{what.peer, rank}];
    isMoved.wait(lock, [&] { return isLost || !messages.waiting.empty(); });
    if (messages.waiting.empty() || messages.waiting.front().size() != partBytes(what))
      return KILN_RANK_LOST;
    std::memcpy(what.to, messages.waiting.front().data(), messages.waiting.front().size());
    messages.waiting.pop();
    return KILN_OK;
  }

  void count(const kiln_collective_t &what) {
    const uint64_t n = members.size(), bytes = partBytes(what);
    ++collectives;
    sentBytes += what.kind == KILN_ALL_REDUCE ? 2 * (n - 1) * bytes / n : (n - 1) * bytes;
  }

  std::vector<char> result(uint32_t rank) const {
    const kiln_collective_t &what = members[rank].begun.front().what;
    const uint64_t bytes = partBytes(what);
    if (what.kind == KILN_ALL_REDUCE || what.kind == KILN_REDUCE_SCATTER)
      return what.element == KILN_I32 ? sum<int32_t>(what.elements, what.kind == KILN_ALL_REDUCE ? 0 : rank * bytes)
                                      : sum<float>(what.elements, what.kind == KILN_ALL_REDUCE ? 0 : rank * bytes);
    std::vector<char> all;
    for (const Member &other : members) {
      const char *from = other.begun.front().input.data() + (what.kind == KILN_EXCHANGE ? rank * bytes : 0);
      all.insert(all.end(), from, from + bytes);
    }
    return all;
  }
  /// Sums `elements` elements of all ranks' inputs, from byte `at` on.
  template <class Number> std::vector<char> sum(uint64_t elements, uint64_t at) const {
    std::vector<Number> sum(elements), own(elements);
    for (const Member &other : members) {
      std::memcpy(own.data(), other.begun.front().input.data() + at, elements * sizeof(Number));
      for (uint64_t i = 0; i < elements; ++i)
        sum[i] += own[i];
    }
    const auto *bytes = reinterpret_cast<const char *>(sum.data());
    return {bytes, bytes + elements * sizeof(Number)};
  }

  std::barrier<> barrier;
  std::vector<Member> members;
  std::mutex mutex;
  std::condition_variable isMoved;
  std::atomic<bool> isLost = false;
  std::map<std::pair<uint32_t, uint32_t>, Messages> between; // by sender and receiver
};

/// A rank that records the collectives it begins, and that may be lost after `left` more.
struct WatchedRank {
  ThreadRanks &ranks;
  kiln_communicator_t inner;
  int left = 1 << 30;
  std::vector<kiln_collective_t> begun = {};

  kiln_communicator_t communicator() { return {this, inner.rank, inner.size, begin, finish, nullptr}; }

private:
  static kiln_status_t begin(void *self, const kiln_collective_t *what, kiln_error_t *error) {
    auto &own = *static_cast<WatchedRank *>(self);
    own.begun.push_back(*what);
    return own.left-- == 0 ? own.ranks.lose(own.inner.rank, error) : own.inner.begin(own.inner.self, what, error);
  }
  static kiln_status_t finish(void *self, kiln_error_t *error) {
    auto &own = *static_cast<WatchedRank *>(self);
    return own.left < 0 ? own.ranks.lose(own.inner.rank, error) : own.inner.finish(own.inner.self, error);
  }
};

} // namespace kiln::test
