// SPDX-License-Identifier: Apache-2.0
//
// Optimal packing is NP-hard, but entries have tens of buffers. Buffers are placed one after another at the lowest
// offset that is free for their whole life; several orders are tried, and the best is improved by moving buffers that
// stick out to the front of it until the lower bound is met or the tries are used up.
#include "compiler/transforms/PackArena.h"

#include <functional>
#include <numeric>

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::kiln {
namespace {

constexpr int maxTries = 2000;

using Order = llvm::SmallVector<unsigned>;

/// First fit in this order.
int64_t place(llvm::MutableArrayRef<ArenaInterval> intervals, llvm::ArrayRef<unsigned> order) {
  int64_t total = 0;
  for (auto [position, index] : llvm::enumerate(order)) {
    ArenaInterval &interval = intervals[index];
    llvm::SmallVector<const ArenaInterval *> conflicts;
    for (unsigned other : order.take_front(position))
      if (intervals[other].first <= interval.last && interval.first <= intervals[other].last)
        conflicts.push_back(&intervals[other]);
    llvm::sort(conflicts, [](auto *lhs, auto *rhs) { return lhs->offset < rhs->offset; });
    interval.offset = 0;
    for (const ArenaInterval *other : conflicts)
      if (interval.offset + interval.bytes > other->offset)
        interval.offset = std::max(interval.offset, other->offset + other->bytes);
    total = std::max(total, interval.offset + interval.bytes);
  }
  return total;
}

} // namespace

int64_t getArenaLowerBound(llvm::ArrayRef<ArenaInterval> intervals) {
  int64_t bound = 0;
  for (const ArenaInterval &at : intervals) { // the live bytes only grow where a buffer begins
    int64_t live = 0;
    for (const ArenaInterval &interval : intervals)
      if (interval.first <= at.first && at.first <= interval.last)
        live += interval.bytes;
    bound = std::max(bound, live);
  }
  return bound;
}

int64_t packArena(llvm::MutableArrayRef<ArenaInterval> intervals) {
  Order initial(intervals.size());
  std::iota(initial.begin(), initial.end(), 0);
  auto life = [&](unsigned i) { return int64_t(intervals[i].last - intervals[i].first + 1); };
  llvm::SmallVector<std::function<int64_t(unsigned)>> keys{
      [&](unsigned i) { return -intervals[i].bytes; },
      [&](unsigned i) { return -intervals[i].bytes * life(i); },
      [&](unsigned i) { return -life(i); },
      [&](unsigned i) { return int64_t(intervals[i].first); },
      [&](unsigned i) { return -int64_t(intervals[i].last); },
  };
  int64_t bound = getArenaLowerBound(intervals), best = std::numeric_limits<int64_t>::max();
  Order bestOrder;
  auto attempt = [&](const Order &order) {
    int64_t total = place(intervals, order);
    bool isBetter = total < best;
    if (isBetter) {
      best = total;
      bestOrder = order;
    }
    return isBetter;
  };
  for (auto &key : keys) {
    Order order = initial;
    llvm::sort(order, [&](unsigned lhs, unsigned rhs) { return std::pair(key(lhs), lhs) < std::pair(key(rhs), rhs); });
    attempt(order);
  }
  for (int tries = 0, from = 0; best > bound && tries < maxTries && from < int(bestOrder.size()); ++tries) {
    // Move one buffer to each earlier place in turn; start over when that helped.
    bool isBetter = false;
    for (int to = 0; to < from && !isBetter && tries < maxTries; ++to, ++tries) {
      Order order = bestOrder;
      std::rotate(order.begin() + to, order.begin() + from, order.begin() + from + 1);
      isBetter = attempt(order);
    }
    from = isBetter ? 0 : from + 1;
  }
  place(intervals, bestOrder);
  return bestOrder.empty() ? 0 : best;
}

} // namespace mlir::kiln
