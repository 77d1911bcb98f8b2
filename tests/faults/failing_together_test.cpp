// SPDX-License-Identifier: Apache-2.0
// Ranks save together, and each system call of rank 0 fails once, as on a full disk: all ranks return the error, the
// file is the previous one, and the ranks can save another file afterwards.
#include "failing_system.h"
#include "ranked_models.h"

namespace {

using namespace kiln_test;
using kiln::test::ThreadRanks;

class FailingTogether : public testing::Test {
protected:
  FailingTogether() {
    RankedModel one(0, 1);
    one.fill(4);
    EXPECT_EQ(one.saveAlone(Files.at("file").c_str(), true), KILN_OK) << one.Bound->Error.message;
    Whole = Files.read("file");
  }

  /// Whether the ranks have failed.
  bool fail(const System &calls) {
    std::ofstream(Files.at("file"), std::ios::binary) << "old";
    const std::string path = Files.at("file");
    std::atomic<int> failures = 0;
    std::mutex mutex;
    std::string words;
    asRanked(4, {}, 4, [&](ThreadRanks &ranks, RankedModel &model, uint32_t rank) {
      if (rank == 0) { // only this rank makes system calls
        Calls = calls;
        Calls.IsWatched = true;
      }
      const kiln_status_t status = model.save(ranks.communicator(rank), path.c_str(), true);
      if (rank == 0)
        Made = Calls.Made;
      Calls.IsWatched = false;
      if (!status)
        return;
      ++failures;
      EXPECT_EQ(status, KILN_FILE_ERROR);
      const std::string own = model.Bound->Error.message;
      EXPECT_EQ(own.find("save_training_together failed on rank 0 of 4: cannot "), 0u) << own;
      EXPECT_NE(own.find("No space left on device"), std::string::npos) << own;
      const std::lock_guard lock(mutex);
      EXPECT_TRUE(words.empty() || words == own) << own;
      words = own;
    });
    EXPECT_TRUE(failures == 0 || failures == 4) << failures;
    EXPECT_TRUE(Files.read("file") == (failures ? "old" : Whole));
    EXPECT_EQ(Files.count(), 1u);
    return failures > 0;
  }

  const Folder Files;
  std::string Whole;
  int Made = 0;
};

TEST_F(FailingTogether, EachCallOnce) {
  int failed = 0;
  System calls;
  calls.Error = ENOSPC;
  do {
    ++calls.FailAt;
    SCOPED_TRACE("call " + std::to_string(calls.FailAt));
    failed += fail(calls);
  } while (Made >= calls.FailAt && calls.FailAt < 1000);
  EXPECT_GE(failed, 20) << "opening, writing each tensor, and what follows";
  EXPECT_FALSE(fail({})) << "on a disk with room it goes on";
}

} // namespace
