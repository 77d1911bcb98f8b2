// SPDX-License-Identifier: Apache-2.0
//
// Ranks that are threads of one process: what an adapter of MPI does between processes, by copies. Sums are added in
// the order of the ranks.
#pragma once

#include <barrier>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "kiln/runtime.h"

namespace kiln::test {

class ThreadRanks {
public:
  explicit ThreadRanks(uint32_t count) : barrier(count), posted(count), members(count) {
    for (uint32_t rank = 0; rank < count; ++rank)
      members[rank] = {this, rank};
  }

  kiln_communicator_t communicator(uint32_t rank) {
    return {&members[rank], rank, static_cast<uint32_t>(members.size()), begin, finish};
  }
  /// Calls `work` for each rank, in a thread of its own.
  void run(const std::function<void(uint32_t rank)> &work) {
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < members.size(); ++rank)
      threads.emplace_back([&, rank] { work(rank); });
    for (std::thread &thread : threads)
      thread.join();
  }
  /// Of rank 0: how many collectives there were, and the bytes that it has sent in them, as rings send them.
  uint64_t collectives = 0, sentBytes = 0;

private:
  struct Member {
    ThreadRanks *all;
    uint32_t rank;
  };

  static kiln_status_t begin(void *self, const kiln_collective_t *collective, kiln_error_t *) {
    const auto &[all, rank] = *static_cast<Member *>(self);
    all->posted[rank] = *collective;
    return KILN_OK;
  }

  static kiln_status_t finish(void *self, kiln_error_t *) {
    const auto &[all, rank] = *static_cast<Member *>(self);
    all->barrier.arrive_and_wait(); // all have posted
    const std::vector<char> result = all->result(rank);
    all->barrier.arrive_and_wait(); // all have read
    std::memcpy(all->posted[rank].to, result.data(), result.size());
    if (rank == 0)
      all->count();
    all->barrier.arrive_and_wait(); // before the next one is posted
    return KILN_OK;
  }

  uint64_t partBytes(uint32_t rank) const {
    constexpr uint64_t sizes[] = {4, 2, 2, 4, 1, 1};
    return posted[rank].elements * sizes[posted[rank].element];
  }

  void count() {
    const uint64_t n = members.size(), bytes = partBytes(0);
    ++collectives;
    sentBytes += posted[0].kind == KILN_ALL_REDUCE ? 2 * (n - 1) * bytes / n : (n - 1) * bytes;
  }

  std::vector<char> result(uint32_t rank) const {
    const uint64_t bytes = partBytes(rank);
    std::vector<char> all;
    if (posted[rank].kind == KILN_ALL_REDUCE) {
      std::vector<float> sum(posted[rank].elements);
      for (const kiln_collective_t &each : posted)
        for (uint64_t i = 0; i < each.elements; ++i)
          sum[i] += static_cast<const float *>(each.to)[i];
      all.assign(reinterpret_cast<const char *>(sum.data()), reinterpret_cast<const char *>(sum.data() + sum.size()));
    } else {
      for (const kiln_collective_t &each : posted)
        all.insert(all.end(), static_cast<const char *>(each.from), static_cast<const char *>(each.from) + bytes);
    }
    return all;
  }

  std::barrier<> barrier;
  std::vector<kiln_collective_t> posted; // by rank
  std::vector<Member> members;
};

} // namespace kiln::test
