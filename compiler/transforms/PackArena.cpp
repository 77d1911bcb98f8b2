// SPDX-License-Identifier: Apache-2.0
//
// Optimal packing is NP-hard, but entries have only tens of buffers. Buffers are placed one after another at the lowest
// offset that is free for their whole lifetime. Several orders are tried, and the best is improved by moving buffers
// forward in it until the lower bound is met or the number of attempts is exhausted.
#include "compiler/transforms/PackArena.h"

#include <functional>
#include <numeric>

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::kiln {
namespace {

constexpr unsigned maxTries = 2000;

using Order = llvm::SmallVector<unsigned>;

/// Tries orders and keeps the best one.
class Packer {
public:
  explicit Packer(llvm::ArrayRef<ArenaInterval> intervals);

  /// Places all buffers first-fit in this order. Returns whether the result is better than all before.
  bool attempt(Order order);
  /// Tries the best order with the buffer at position `from` moved to the earlier position `to`.
  bool attemptMove(unsigned from, unsigned to);

  int64_t best() const { return bestBytes; }
  llvm::ArrayRef<int64_t> bestOffsets() const { return offsetsOfBest; }
  size_t size() const { return intervals.size(); }

private:
  void setOrder(Order next);
  int64_t firstFit(unsigned index) const;
  bool keepIfBetter();

  llvm::ArrayRef<ArenaInterval> intervals;
  std::vector<llvm::SmallVector<unsigned>> neighbours; // buffers that are live at the same time
  Order order, places, bestOrder;                      // places: the position of each buffer in the order
  llvm::SmallVector<int64_t> offsets, offsetsOfBest;
  int64_t bestBytes = std::numeric_limits<int64_t>::max();
};

Packer::Packer(llvm::ArrayRef<ArenaInterval> intervals)
    : intervals(intervals), neighbours(intervals.size()), places(intervals.size()), offsets(intervals.size()) {
  for (unsigned i = 0; i < intervals.size(); ++i)
    for (unsigned other = 0; other < intervals.size(); ++other)
      if (other != i && intervals[other].first <= intervals[i].last && intervals[i].first <= intervals[other].last)
        neighbours[i].push_back(other);
}

void Packer::setOrder(Order next) {
  order = std::move(next);
  for (auto [place, index] : llvm::enumerate(order))
    places[index] = place;
}

/// Returns the lowest offset that is free of all buffers before it in the order.
int64_t Packer::firstFit(unsigned index) const {
  llvm::SmallVector<int64_t, 64> begins, ends; // of the occupied ranges
  for (unsigned other : neighbours[index])
    if (places[other] < places[index]) {
      begins.push_back(offsets[other]);
      ends.push_back(offsets[other] + intervals[other].bytes);
    }
  const int64_t bytes = intervals[index].bytes;
  int64_t offset = 0;
  for (int64_t next = 0;; offset = next) { // skips overlapping ranges until none is left
    for (size_t i = 0; i < ends.size(); ++i)
      next = std::max(next, begins[i] < offset + bytes && offset < ends[i] ? ends[i] : 0);
    if (next == offset)
      return offset;
  }
}

bool Packer::keepIfBetter() {
  int64_t bytes = 0;
  for (auto [offset, interval] : llvm::zip_equal(offsets, intervals))
    bytes = std::max(bytes, offset + interval.bytes);
  if (bytes >= bestBytes)
    return false;
  bestBytes = bytes;
  bestOrder = order;
  offsetsOfBest = offsets;
  return true;
}

bool Packer::attempt(Order next) {
  setOrder(std::move(next));
  for (unsigned index : order)
    offsets[index] = firstFit(index);
  return keepIfBetter();
}

bool Packer::attemptMove(unsigned from, unsigned to) {
  Order next = bestOrder;
  std::rotate(next.begin() + to, next.begin() + from, next.begin() + from + 1);
  setOrder(std::move(next));
  offsets = offsetsOfBest;
  llvm::BitVector isTouched(size()); // by the moved buffer, so that it may have to move, too
  const unsigned moved = order[to];
  isTouched.set(moved);
  for (unsigned index : llvm::ArrayRef(order).drop_front(to)) {
    if (!isTouched[index])
      continue;
    const int64_t before = std::exchange(offsets[index], firstFit(index));
    if (offsets[index] + intervals[index].bytes >= bestBytes)
      return false;
    if (offsets[index] != before || index == moved)
      for (unsigned other : neighbours[index])
        isTouched.set(other);
  }
  return keepIfBetter();
}

} // namespace

int64_t getArenaLowerBound(llvm::ArrayRef<ArenaInterval> intervals) {
  int64_t bound = 0;
  for (const ArenaInterval &at : intervals) { // the number of live bytes only grows where a buffer begins
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
  const int64_t bound = getArenaLowerBound(intervals);
  Packer packer(intervals);
  for (auto &key : keys) {
    Order order = initial;
    llvm::sort(order, [&](unsigned lhs, unsigned rhs) { return std::pair(key(lhs), lhs) < std::pair(key(rhs), rhs); });
    packer.attempt(order);
  }
  for (unsigned tries = 0, from = 0; packer.best() > bound && tries < maxTries && from < packer.size(); ++tries) {
    // Move one buffer to each earlier position; start over when that helped.
    bool isBetter = false;
    for (unsigned to = 0; to < from && !isBetter && tries < maxTries; ++to, ++tries)
      isBetter = packer.attemptMove(from, to);
    from = isBetter ? 0 : from + 1;
  }
  for (auto [interval, offset] : llvm::zip_equal(intervals, packer.bestOffsets()))
    interval.offset = offset;
  return intervals.empty() ? 0 : packer.best();
}

} // namespace mlir::kiln
