// SPDX-License-Identifier: Apache-2.0
//
// Packed buffers never overlap while both are live, and the arena is near the lower bound.
#include "compiler/transforms/PackArena.h"

#include <gtest/gtest.h>
#include <random>
#include <vector>

using mlir::kiln::ArenaInterval;

namespace {

void expectDisjoint(const std::vector<ArenaInterval> &intervals, int64_t bytes) {
  for (size_t i = 0; i < intervals.size(); ++i) {
    const ArenaInterval &a = intervals[i];
    EXPECT_GE(a.offset, 0);
    EXPECT_LE(a.offset + a.bytes, bytes);
    for (size_t j = i + 1; j < intervals.size(); ++j) {
      const ArenaInterval &b = intervals[j];
      bool inTime = a.first <= b.last && b.first <= a.last;
      bool inSpace = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
      EXPECT_FALSE(inTime && inSpace) << i << " and " << j;
    }
  }
}

TEST(PackArena, Nothing) {
  std::vector<ArenaInterval> none;
  EXPECT_EQ(mlir::kiln::packArena(none), 0);
}

TEST(PackArena, ReusesWhatIsDead) {
  std::vector<ArenaInterval> intervals{{64, 0, 1}, {128, 1, 2}, {64, 2, 3}};
  EXPECT_EQ(mlir::kiln::packArena(intervals), 192);
  EXPECT_EQ(intervals[0].offset, intervals[2].offset);
}

// A greedy order by size only would place the two small ones around the large one's gap.
TEST(PackArena, ImprovesOnGreedyOrders) {
  std::vector<ArenaInterval> intervals{{192, 0, 1}, {128, 1, 3}, {192, 3, 4}, {128, 2, 2}, {64, 0, 2}, {64, 2, 4}};
  int64_t bound = mlir::kiln::getArenaLowerBound(intervals);
  EXPECT_LE(mlir::kiln::packArena(intervals), bound + bound / 10);
}

TEST(PackArena, RandomIntervals) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<ArenaInterval> intervals(3 + random() % 20);
    for (ArenaInterval &interval : intervals) {
      interval.bytes = 64 * (1 + random() % 30);
      interval.first = random() % 20;
      interval.last = interval.first + random() % 6;
    }
    int64_t bytes = mlir::kiln::packArena(intervals);
    expectDisjoint(intervals, bytes);
    EXPECT_GE(bytes, mlir::kiln::getArenaLowerBound(intervals));
    std::vector<ArenaInterval> again = intervals;
    EXPECT_EQ(mlir::kiln::packArena(again), bytes); // deterministic, for any initial offsets
  }
}

} // namespace
