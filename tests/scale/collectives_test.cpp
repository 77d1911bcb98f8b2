// SPDX-License-Identifier: Apache-2.0
// The formulas of all-reduce and pipelines, compared with simulations.
#include "tools/scale/Collectives.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <vector>

namespace kiln {
namespace {

constexpr Link link{2e-6, 1e9};

// By hand: 4 ranks, 4000 bytes; pieces of 1000 go around twice, three steps each: 6 (2 us + 1 us). Tree: 2 (2 + 4).
TEST(Collectives, CountedByHand) {
  EXPECT_DOUBLE_EQ(ringBytes(4000, 4), 6000);
  EXPECT_DOUBLE_EQ(ringAllReduce(link, 4000, 4), 18e-6);
  EXPECT_DOUBLE_EQ(treeAllReduce(link, 4000, 4), 12e-6);
  EXPECT_DOUBLE_EQ(treeAllReduce(link, 4000, 5), 18e-6) << "5 ranks take as many steps as 8";
  EXPECT_DOUBLE_EQ(allGather(link, 1000, 4), 9e-6);
  EXPECT_DOUBLE_EQ(link.seconds(0), 2e-6);
}

TEST(Collectives, OneRankSendsNothing) {
  EXPECT_EQ(ringBytes(4000, 1), 0);
  EXPECT_EQ(allReduce(link, 4000, 1), 0);
  EXPECT_EQ(allGather(link, 4000, 1), 0);
}

// Short all-reduces use the algorithm with few steps, long ones the algorithm with few bytes.
TEST(Collectives, TheFasterWayIsTaken) {
  EXPECT_EQ(allReduce(link, 100, 8), treeAllReduce(link, 100, 8));
  EXPECT_EQ(allReduce(link, 1e8, 8), ringAllReduce(link, 1e8, 8));
  EXPECT_LT(allReduce(link, 1e8, 8), 1.76e8 / 1e9 * 1.01) << "2 (n - 1) / n of the bytes";
}

/// Simulates a 1F1B pipeline schedule, where each stage alternates one forward and one backward pass, as soon as both
/// its neighbours and itself allow: `forward` and `back` seconds per micro-batch; stage s first does p - 1 - s forward
/// passes.
double simulate(int stages, int microbatches, double forward, double back) {
  std::vector<std::vector<double>> done(stages, std::vector<double>(microbatches, -1)), returned = done;
  std::vector<double> free(stages, 0);
  std::vector<int> nextForward(stages, 0), nextBack(stages, 0);
  for (bool moves = true; moves;) {
    moves = false;
    for (int s = 0; s < stages; ++s) {
      const int f = nextForward[s], b = nextBack[s];
      const bool isForward = f < microbatches && f - b < stages - s;
      if (isForward && (s == 0 || done[s - 1][f] >= 0)) {
        free[s] = done[s][f] = std::max(free[s], s ? done[s - 1][f] : 0) + forward;
        ++nextForward[s];
        moves = true;
      } else if (!isForward && b < f && (s == stages - 1 || returned[s + 1][b] >= 0)) {
        free[s] = returned[s][b] = std::max(free[s], s < stages - 1 ? returned[s + 1][b] : 0) + back;
        ++nextBack[s];
        moves = true;
      }
    }
  }
  for (int s = 0; s < stages; ++s)
    EXPECT_EQ(nextBack[s], microbatches) << "stage " << s << " waits forever";
  return *std::max_element(free.begin(), free.end());
}

TEST(Pipeline, TakesAsLongAsItsSchedule) {
  for (int stages : {1, 2, 3, 4, 8})
    for (int microbatches : {1, 2, 5, 8, 24})
      EXPECT_NEAR((Pipeline{stages, microbatches}.seconds(3)), simulate(stages, microbatches, 1, 2), 1e-9)
          << stages << " stages, " << microbatches << " micro-batches";
}

TEST(Pipeline, BubbleByHand) {
  EXPECT_DOUBLE_EQ((Pipeline{8, 8}.bubble()), 7.0 / 8);
  EXPECT_DOUBLE_EQ((Pipeline{8, 64}.bubble()), 7.0 / 64);
  EXPECT_DOUBLE_EQ((Pipeline{8, 64, 2}.bubble()), 7.0 / 128) << "two parts a stage halve it";
  EXPECT_DOUBLE_EQ((Pipeline{1, 1}.bubble()), 0);
}

TEST(Overlap, LeavesTheLastBucketAtLeast) {
  EXPECT_DOUBLE_EQ(exposed(10, 0, 5), 10);
  EXPECT_DOUBLE_EQ(exposed(10, 4, 5), 6);
  EXPECT_DOUBLE_EQ(exposed(10, 100, 5), 2);
}

} // namespace
} // namespace kiln
