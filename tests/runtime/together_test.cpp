// SPDX-License-Identifier: Apache-2.0
// Ranks write one file together, which equals that of one process byte for byte, and load their slices of it; and all
// ranks fail if one of them fails.
#include "ranked_grids.h"

namespace {

using namespace kiln_test;
using kiln::test::ThreadRanks;

TEST(Together, TheFileIsThatOfOneProcess) {
  const Folder folder;
  for (const Kind kind : {Kind{false, true}, Kind{true, false}})
    for (const bool isTraining : {false, true}) {
      RankedModel one(0, 1, kind);
      ASSERT_NO_FATAL_FAILURE(one.fill(5));
      ASSERT_EQ(one.saveAlone(folder.at("one").c_str(), isTraining), KILN_OK) << one.Bound->Error.message;
      for (const uint32_t count : {2u, 4u}) {
        SCOPED_TRACE(testing::Message() << count << " ranks, training " << isTraining << ", frozen " << kind.HasFrozen);
        asRanked(count, kind, 5, [&](ThreadRanks &ranks, RankedModel &model, uint32_t rank) {
          const std::string path = folder.at("many");
          EXPECT_EQ(model.save(ranks.communicator(rank), rank ? nullptr : path.c_str(), isTraining), KILN_OK)
              << model.Bound->Error.message;
          EXPECT_STREQ(model.Bound->Error.message, "");
        });
        EXPECT_EQ(folder.read("many"), folder.read("one"));
        EXPECT_EQ(folder.count(), 2u);
      }
    }
}

TEST(Together, EachRankLoadsItsSlices) {
  const Folder folder;
  for (const Kind kind : {Kind{false, true}, Kind{true, false}}) {
    RankedModel one(0, 1, kind);
    ASSERT_NO_FATAL_FAILURE(one.fill(9));
    ASSERT_EQ(one.saveAlone(folder.at("one").c_str(), true), KILN_OK) << one.Bound->Error.message;
    for (const uint32_t count : {2u, 4u})
      asRanked(count, kind, 3, [&](ThreadRanks &, RankedModel &model, uint32_t rank) {
        RankedModel wanted(rank, count, kind);
        ASSERT_NO_FATAL_FAILURE(wanted.fill(9));
        ASSERT_NE(model.contents(), wanted.contents());
        ASSERT_EQ(model.load(folder.at("one").c_str()), KILN_OK) << model.Bound->Error.message;
        EXPECT_EQ(model.contents(), wanted.contents()) << rank << " of " << count;
      });
  }
}

/// Returns the bytes of a file in which a text is replaced by another one of the same length.
std::string replaced(std::string bytes, const std::string &from, const std::string &to) {
  return bytes.replace(bytes.find(from), from.size(), to);
}

// A file of another model, a file with a slice's shape, or a truncated file.
TEST(Together, WhatDoesNotFitChangesNothing) {
  const Folder folder;
  for (const Kind kind : {Kind{false}, Kind{true}}) {
    RankedModel one(0, 1, kind);
    ASSERT_NO_FATAL_FAILURE(one.fill(9));
    ASSERT_EQ(one.saveAlone(folder.at("one").c_str(), true), KILN_OK) << one.Bound->Error.message;
    const std::string bytes = folder.read("one");
    const struct {
      std::string Bytes;
      kiln_status_t Status;
      const char *Words;
    } cases[] = {
        {replaced(bytes, "i.wide", "k.wide"), KILN_WEIGHT_MISSING,
         "\"i.wide\"" /* by itself or, without frozen weights, with the unexpected tensor */},
        {replaced(bytes, "[20, 13]", "[10, 26]"), KILN_WEIGHT_SHAPE,
         "tensor \"i.wide\": wrong shape; expected [20, 13], got [10, 26]"},
        {replaced(bytes, "[7, 40]", "[40, 7]"), KILN_WEIGHT_SHAPE,
         "tensor \"c.0.fused\": wrong shape; expected [7, 40], got [40, 7]"},
        {replaced(bytes, "mean:d.shared\":{\"dtype\":\"F32\",\"shape\":[28, 3]",
                  "mean:d.shared\":{\"dtype\":\"F32\",\"shape\":[3, 28]"),
         KILN_WEIGHT_SHAPE, "tensor \"mean:d.shared\": wrong shape; expected [28, 3], got [3, 28]"},
        {bytes.substr(0, bytes.size() - 4), KILN_FILE_MALFORMED, ""},
    };
    for (const auto &test : cases) {
      std::ofstream(folder.at("other"), std::ios::binary) << test.Bytes;
      asRanked(2, kind, 3, [&](ThreadRanks &, RankedModel &model, uint32_t) {
        const std::string before = model.contents();
        EXPECT_EQ(model.load(folder.at("other").c_str()), test.Status) << model.Bound->Error.message;
        EXPECT_NE(std::string(model.Bound->Error.message).find(test.Words), std::string::npos)
            << model.Bound->Error.message;
        EXPECT_EQ(model.contents(), before);
      });
    }
  }
}

/// Expects that all ranks return this error, and that only the previous file is there.
void expectFailure(uint32_t count, const Folder &folder, kiln_status_t status, const std::string &words,
                   const std::function<kiln_status_t(ThreadRanks &, RankedModel &, uint32_t)> &save) {
  std::ofstream(folder.at("file"), std::ios::binary) << "old";
  asRanked(count, {true}, 1, [&](ThreadRanks &ranks, RankedModel &model, uint32_t rank) {
    EXPECT_EQ(save(ranks, model, rank), status) << model.Bound->Error.message;
    EXPECT_EQ(model.Bound->Error.status, status);
    EXPECT_EQ(std::string(model.Bound->Error.message), words);
  });
  EXPECT_EQ(folder.read("file"), "old");
  EXPECT_EQ(folder.count(), 1u);
}

TEST(Together, AFailureOfOneIsThatOfAll) {
  const Folder folder;
  const std::string missing = folder.at("missing/file"), path = folder.at("file");
  expectFailure(4, folder, KILN_FILE_ERROR,
                "save_weights_together failed on rank 0 of 4: cannot create weight file \"" + missing + "." +
                    std::to_string(getpid()) + ".part\": No such file or directory",
                [&](ThreadRanks &ranks, RankedModel &model, uint32_t rank) {
                  return model.save(ranks.communicator(rank), missing.c_str(), false);
                });
  expectFailure(
      2, folder, KILN_NULL_ARGUMENT,
      "save_training_together failed on rank 0 of 2: save_training_together: null given; expected a path on rank 0",
      [&](ThreadRanks &ranks, RankedModel &model, uint32_t rank) {
        return model.save(ranks.communicator(rank), nullptr, true);
      });
  // The last rank fails its second allocation, which is the transfer buffer: the other ranks get its message.
  expectFailure(
      4, folder, KILN_OUT_OF_MEMORY,
      "save_weights_together failed on rank 3 of 4: room for pieces of tensors: no memory; expected 4194304 bytes",
      [&](ThreadRanks &ranks, RankedModel &model, uint32_t rank) {
        if (rank == 3)
          model.Bound->Counter.Limit = model.Bound->Counter.Made + 1;
        return model.save(ranks.communicator(rank), path.c_str(), false);
      });
  expectFailure(2, folder, KILN_ARENA_TOO_SMALL,
                "save_training_together failed on rank 1 of 2: save_training_together: arena too small; expected 11136 "
                "bytes, got 64",
                [&](ThreadRanks &ranks, RankedModel &model, uint32_t rank) {
                  const kiln_communicator_t own = ranks.communicator(rank);
                  const kiln_call_t call = {.arena = model.arena(),
                                            .arena_bytes = rank ? 64 : model.arenaBytes(),
                                            .executor = nullptr,
                                            .error = &model.Bound->Error,
                                            .communicator = &own};
                  return kiln_save_training_together(model.Bound->Model, &call, &model.Training, path.c_str());
                });
}

// Wherever the rank is lost: before the last message of rank 0 the old file remains; afterwards there is a complete new
// one.
TEST(Together, ALostRankEndsTheOthers) {
  const Folder folder;
  RankedModel one(0, 1);
  ASSERT_NO_FATAL_FAILURE(one.fill(1));
  ASSERT_EQ(one.saveAlone(folder.at("file").c_str(), true), KILN_OK);
  const std::string whole = folder.read("file");
  for (const uint32_t lost : {0u, 2u}) {
    std::mutex mutex;
    for (int step = 0, failures = 3; failures > 0; ++step) {
      SCOPED_TRACE(testing::Message() << "rank " << lost << " at step " << step);
      failures = 0;
      std::ofstream(folder.at("file"), std::ios::binary) << "old";
      asRanked(4, {}, 1, [&](ThreadRanks &ranks, RankedModel &model, uint32_t rank) {
        Losing losing = {&ranks, ranks.communicator(rank), rank == lost ? step : 1 << 30};
        const kiln_status_t status = model.save(losing.get(), folder.at("file").c_str(), true);
        const std::lock_guard lock(mutex);
        failures += status == KILN_RANK_LOST;
        if (status) {
          EXPECT_EQ(std::string(model.Bound->Error.message),
                    "save_training_together on rank " + std::to_string(rank) + " of 4 cannot finish: a rank is gone");
          model.Bound->Kept = 2; // the communicator may still write to these
        }
        EXPECT_TRUE(status == KILN_OK || status == KILN_RANK_LOST) << status;
      });
      EXPECT_TRUE(failures == 0 || failures == 4) << failures;
      const std::string left = folder.read("file");
      EXPECT_TRUE(left == whole || (failures && left == "old"));
      EXPECT_EQ(folder.count(), 1u) << "a part is left";
      ASSERT_LT(step, 1000);
    }
  }
}

TEST(Together, CallsThatReachNobodyAreRefused) {
  RankedModel one(0, 1), ranked(1, 2);
  kiln_error_t error = {};
  kiln_call_t call = {.arena = nullptr, .arena_bytes = 0, .executor = nullptr, .error = &error};
  kiln_training_t training = {};
  EXPECT_EQ(kiln_save_weights_together(nullptr, &call, "f"), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(error.message, "save_weights_together: null given; expected a model");
  EXPECT_EQ(kiln_save_weights_together(ranked.Bound->Model, nullptr, "f"), KILN_NULL_ARGUMENT);
  EXPECT_EQ(kiln_save_training_together(ranked.Bound->Model, &call, &training, "f"), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(error.message,
               "save_training_together: null given; expected a communicator of ranks with begin and finish");
  EXPECT_EQ(kiln_save_training_together(one.Bound->Model, &call, &training, "f"), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "save_training_together: library for one rank; expected one for several");
  ThreadRanks ranks(2);
  const kiln_communicator_t other = ranks.communicator(0), own = ranks.communicator(1);
  call.communicator = &other;
  EXPECT_EQ(kiln_save_training_together(ranked.Bound->Model, &call, &training, "f"), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message,
               "save_training_together: wrong communicator; expected rank 1 of 2, as its model, got rank 0");
  call.communicator = &own;
  EXPECT_EQ(kiln_save_training_together(ranked.Bound->Model, &call, nullptr, "f"), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(error.message, "save_training_together: null given; expected a step and a seed");
}

} // namespace
