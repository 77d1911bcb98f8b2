// SPDX-License-Identifier: Apache-2.0
// Pipeline-parallel models compared with the same models in one process: equal bits, overlapping calls, the weights
// that a stage has, and refused calls.
#include <filesystem>
#include <gtest/gtest.h>
#include <set>
#include <unistd.h>

#include "char_gpt.h"
#include "char_gpt_grid.h"
#include "char_gpt_ranks2.h"
#include "char_gpt_stages2.h"
#include "gpt2_stages3.h"
#include "gpt2_writer.h"
#include "guarded_image.h"
#include "llama_stages4.h"
#include "llama_writer.h"
#include "staged_writer.h"
#include "thread_ranks.h"
#include "writer.h"

namespace kiln::test {
namespace {

WRITER(char_gpt, CHAR_GPT);
WRITER(char_gpt_ranks2, CHAR_GPT_RANKS2);
WRITER(char_gpt_stages2, CHAR_GPT_STAGES2);
WRITER(char_gpt_grid, CHAR_GPT_GRID);
WRITER(gpt2_writer, GPT2_WRITER);
WRITER(gpt2_stages3, GPT2_STAGES3);
WRITER(llama_writer, LLAMA_WRITER);
WRITER(llama_stages4, LLAMA_STAGES4);

const std::string charGpt = KILN_EXAMPLES "/char_gpt/char_gpt.safetensors";
const std::string gpt2 = KILN_EXAMPLES "/gpt2/king_james/model.safetensors";
const std::string llama = KILN_EXAMPLES "/llama/king_james/model.safetensors";
constexpr size_t letters = 63;

TEST(Stages, TwoAreTheSameBits) { expectSame<char_gpt, char_gpt_stages2>(charGpt, letters, 2, 4); }
// Stages between the first and the last have one layer each, and compute the rotary angles themselves.
TEST(Stages, FourAreTheSameBits) { expectSame<llama_writer, llama_stages4>(llama, 2000, 4, 4); }
// The embedding table is tied to the logits: the first and the last stage both have it.
TEST(Stages, OfATiedTableAreTheSameBits) { expectSame<gpt2_writer, gpt2_stages3>(gpt2, 2000, 3, 3); }

// Two pipeline stages of two tensor-parallel ranks each have the bits of two ranks.
TEST(Stages, OfRanksAreTheSameBits) {
  const std::vector<int32_t> tokens = drawTokens(letters);
  std::vector<float> wanted;
  ThreadRanks two(2);
  two.run([&](uint32_t rank) {
    const kiln_communicator_t communicator = two.communicator(rank);
    std::vector<float> logits = write<char_gpt_ranks2>(charGpt, tokens, letters, &communicator);
    if (rank == 0)
      wanted = std::move(logits);
  });
  ThreadRanks ranks[2] = {ThreadRanks(2), ThreadRanks(2)}, stages[2] = {ThreadRanks(2), ThreadRanks(2)};
  std::vector<std::vector<float>> got(4);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < 2; ++rank)
    for (uint32_t stage = 0; stage < 2; ++stage)
      threads.emplace_back([&, rank, stage] {
        const kiln_communicator_t ofRanks = ranks[stage].communicator(rank),
                                  ofStages = stages[rank].communicator(stage);
        got[stage * 2 + rank] = write<char_gpt_grid>(charGpt, tokens, letters, &ofRanks, &ofStages);
      });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_TRUE(isSame(got[2], wanted));
  EXPECT_TRUE(isSame(got[3], wanted));
}

/// One of two stages, with a call.
class Stage {
public:
  explicit Stage(const kiln_communicator_t &stages) : arena((CHAR_GPT_STAGES2_FORWARD_ARENA_BYTES(1) + 63) / 64 * 64) {
    kiln_options_t options{};
    options.stage = stages.rank;
    options.stages = stages.size;
    EXPECT_EQ(char_gpt_stages2_create_on(&options, &model, &error), KILN_OK) << error.message;
    call = {arena.data, arena.bytes, nullptr, &error};
    call.stages = &stages;
  }
  ~Stage() { char_gpt_stages2_destroy(model); }
  Stage(const Stage &) = delete;

  void bind() { ASSERT_EQ(char_gpt_stages2_bind_weights(model, charGpt.c_str(), &error), KILN_OK) << error.message; }
  kiln_status_t forward(const std::vector<int32_t> &tokens, int64_t count, float *logits) {
    return char_gpt_stages2_forward(model, &call, count, tokens.data(), logits);
  }

  kiln_error_t error{};
  char_gpt_stages2_t *model = nullptr;
  const Memory arena;
  kiln_call_t call{};
};

// The first stage completes five calls before the second stage begins: a stage does not wait for its successors.
TEST(Stages, AreAheadOfEachOther) {
  const std::vector<int32_t> tokens = drawTokens(letters);
  ThreadRanks stages(2);
  const kiln_communicator_t peers[2] = {stages.communicator(0), stages.communicator(1)};
  Stage first(peers[0]), second(peers[1]);
  first.bind();
  second.bind();
  for (int64_t count = 1; count <= 5; ++count)
    ASSERT_EQ(first.forward(tokens, count, nullptr), KILN_OK) << first.error.message;
  char_gpt_t *whole = nullptr;
  ASSERT_EQ(char_gpt_create(nullptr, &whole, nullptr), KILN_OK);
  ASSERT_EQ(char_gpt_bind_weights(whole, charGpt.c_str(), nullptr), KILN_OK);
  const Memory arena((CHAR_GPT_FORWARD_ARENA_BYTES(1) + 63) / 64 * 64);
  const kiln_call_t call{arena.data, arena.bytes, nullptr, nullptr};
  for (int64_t count = 1; count <= 5; ++count) {
    std::vector<float> got(static_cast<size_t>(count) * letters), wanted(got.size());
    ASSERT_EQ(second.forward(tokens, count, got.data()), KILN_OK) << second.error.message;
    ASSERT_EQ(char_gpt_forward(whole, &call, count, tokens.data(), wanted.data()), KILN_OK);
    EXPECT_TRUE(isSame(got, wanted)) << count;
  }
  char_gpt_destroy(whole);
}

/// Whether one of two stages has a tensor of the model. The embedding table is tied to the logits.
bool hasTensor(uint32_t stage, const std::string &tensor) {
  if (tensor.rfind("h.", 0) == 0)
    return stage == (tensor[2] < '2' ? 0U : 1U);
  return tensor == "wte.weight" || stage == (tensor == "wpe.weight" ? 0U : 1U);
}

// A stage reads no page of other stages' layers, and does not offer these layers afterwards.
TEST(Stages, HaveTheirLayersAlone) {
  ThreadRanks stages(2);
  for (uint32_t number = 0; number < 2; ++number) {
    const kiln_communicator_t peer = stages.communicator(number);
    Stage stage(peer);
    const Image all(charGpt);
    Image image(charGpt);
    ASSERT_EQ(image.tensors.size(), 68U);
    EXPECT_GT(image.forbid([&](const std::string &name) { return hasTensor(number, name); }), 350U);
    ASSERT_EQ(char_gpt_stages2_bind_weights_from_memory(stage.model, image.data, image.size, &stage.error), KILN_OK)
        << stage.error.message;
    for (const auto &[name, range] : all.tensors) {
      std::vector<char> row(512 * sizeof(float));
      const kiln_status_t status =
          char_gpt_stages2_read_weight(stage.model, name.c_str(), 0, 1, row.data(), &stage.error);
      if (hasTensor(number, name)) {
        EXPECT_EQ(status, KILN_OK) << name << ": " << stage.error.message;
        EXPECT_EQ(std::memcmp(row.data(), all.data + range.first, sizeof(float)), 0) << name;
      } else {
        EXPECT_EQ(status, KILN_WEIGHT_MISSING) << name;
        EXPECT_EQ(stage.error.message,
                  "rows of a weight: no access; expected a name that the stage has, got \"" + name + "\"");
      }
    }
  }
}

// The file is that of the whole model: every stage detects errors in another stage's layers.
TEST(Stages, CheckAllOfTheFile) {
  ThreadRanks stages(2);
  const kiln_communicator_t peer = stages.communicator(0);
  Stage first(peer);
  Image image(charGpt);
  const std::string header(image.data, image.begin);
  image.data[header.find("\"h.3.norm1.bias\"") + 3] = '4';
  EXPECT_EQ(char_gpt_stages2_bind_weights_from_memory(first.model, image.data, image.size, &first.error),
            KILN_WEIGHT_MISSING);
  EXPECT_NE(std::string(first.error.message)
                .find("1 missing, 1 unexpected: \"h.3.norm1.bias\" missing (nearest \"h.4.norm1.bias\"), "
                      "\"h.4.norm1.bias\" unexpected"),
            std::string::npos)
      << first.error.message;
}

TEST(Stages, HavePackedFilesOfTheirOwn) {
  ThreadRanks stages(2);
  const kiln_communicator_t peers[2] = {stages.communicator(0), stages.communicator(1)};
  Stage first(peers[0]), again(peers[0]), second(peers[1]);
  first.bind();
  const std::string path = std::filesystem::temp_directory_path() / ("kiln_stages_" + std::to_string(getpid()));
  ASSERT_EQ(char_gpt_stages2_save_packed(first.model, path.c_str(), &first.error), KILN_OK) << first.error.message;
  EXPECT_EQ(char_gpt_stages2_bind_packed(second.model, path.c_str(), &second.error), KILN_FILE_MISMATCH);
  EXPECT_NE(std::string(second.error.message).find("(stage 1 of 2), got "), std::string::npos) << second.error.message;
  EXPECT_EQ(char_gpt_stages2_bind_packed(again.model, path.c_str(), &again.error), KILN_OK) << again.error.message;
  const uintmax_t bytes = std::filesystem::file_size(path);
  EXPECT_LE(bytes, char_gpt_stages2::weightBytes + 4096);
  std::filesystem::remove(path);
  // Both stages send and receive the same data.
  const std::vector<int32_t> tokens = drawTokens(letters);
  second.bind();
  std::vector<float> logits[2] = {std::vector<float>(7 * letters), std::vector<float>(7 * letters)};
  ASSERT_EQ(first.forward(tokens, 7, nullptr), KILN_OK);
  ASSERT_EQ(again.forward(tokens, 7, nullptr), KILN_OK);
  ASSERT_EQ(second.forward(tokens, 7, logits[0].data()), KILN_OK);
  ASSERT_EQ(second.forward(tokens, 7, logits[1].data()), KILN_OK);
  EXPECT_TRUE(isSame(logits[0], logits[1]));
}

// A trace numbers the layers of the whole model.
TEST(Stages, TraceLayersOfAll) {
  ThreadRanks stages(2);
  const kiln_communicator_t peers[2] = {stages.communicator(0), stages.communicator(1)};
  const std::vector<int32_t> tokens = drawTokens(letters);
  std::vector<float> logits(3 * letters);
  for (int64_t number = 0; number < 2; ++number) {
    Stage stage(peers[number]);
    stage.bind();
    struct Seen {
      std::set<int64_t> layers;
      std::vector<std::string> moved;
    } seen;
    const kiln_trace_t trace{&seen,
                             [](void *self, const kiln_event_t *event) {
                               auto &told = *static_cast<Seen *>(self);
                               if (event->number >= 0)
                                 told.layers.insert(event->number);
                               if (event->kernel == std::string("send") || event->kernel == std::string("receive"))
                                 told.moved.push_back(event->kernel + (" " + std::to_string(event->bytes)));
                             },
                             [](void *, const kiln_event_t *) {}};
    stage.call.trace = &trace;
    ASSERT_EQ(stage.forward(tokens, 3, logits.data()), KILN_OK) << stage.error.message;
    EXPECT_EQ(seen.layers, (std::set<int64_t>{2 * number, 2 * number + 1}));
    EXPECT_EQ(seen.moved, std::vector<std::string>{number ? "receive 1536" : "send 1536"}); // 3 rows of 128 f32
  }
}

TEST(Stages, TellOfOneThatIsLost) {
  ThreadRanks stages(2);
  const kiln_communicator_t peer = stages.communicator(1);
  Stage second(peer);
  second.bind();
  std::vector<float> logits(3 * letters);
  std::thread first([&] { stages.lose(0); });
  EXPECT_EQ(second.forward(drawTokens(letters), 3, logits.data()), KILN_RANK_LOST);
  EXPECT_STREQ(second.error.message, "forward on stage 1 of 2 cannot finish its receive of 1536 bytes: a rank is gone");
  first.join();
}

TEST(Stages, RefuseToBeOthers) {
  kiln_error_t error{};
  char_gpt_stages2_t *model = nullptr;
  EXPECT_EQ(char_gpt_stages2_create(nullptr, &model, &error), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "model \"char_gpt_stages2\": no stage given; expected create_on with one and 2 stages");
  kiln_options_t options{};
  options.stages = 3;
  EXPECT_EQ(char_gpt_stages2_create_on(&options, &model, &error), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "model \"char_gpt_stages2\": wrong group size; expected 2 stages, got 3");
  options.stage = options.stages = 2;
  EXPECT_EQ(char_gpt_stages2_create_on(&options, &model, &error), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "model \"char_gpt_stages2\": stage too large; expected below 2, got 2");
  char_gpt_t *whole = nullptr;
  EXPECT_EQ(char_gpt_create_on(&options, &whole, &error), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "create_on: library is not for several stages; expected stage 0, got stage 2 of 2");
  EXPECT_EQ(whole, nullptr);
}

TEST(Stages, RefuseOtherCalls) {
  ThreadRanks stages(2), others(3);
  const kiln_communicator_t peers[2] = {stages.communicator(0), stages.communicator(1)}, more = others.communicator(1);
  Stage stage(peers[1]);
  stage.bind();
  const std::vector<int32_t> tokens = drawTokens(letters);
  std::vector<float> logits(3 * letters);
  auto expect = [&](kiln_status_t status, const char *words) {
    EXPECT_EQ(stage.forward(tokens, 3, logits.data()), status);
    EXPECT_STREQ(stage.error.message, words);
  };
  stage.call.stages = nullptr;
  expect(KILN_NULL_ARGUMENT, "forward: null given; expected a communicator of stages with begin and finish");
  stage.call.stages = &peers[0];
  expect(KILN_INVALID_ARGUMENT, "forward: wrong communicator; expected stage 1 of 2, as its model, got stage 0");
  stage.call.stages = &more;
  expect(KILN_INVALID_ARGUMENT, "forward: wrong communicator; expected one of 2 stages, got stage 1 of 3");
  stage.call.stages = &peers[1];
  stage.call.communicator = &peers[1];
  expect(KILN_INVALID_ARGUMENT, "forward: communicator set; expected a null one of ranks");
  stage.call.communicator = nullptr;
  EXPECT_EQ(stage.forward(tokens, 3, nullptr), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(stage.error.message, "forward: null given; expected output \"logits\"");
  EXPECT_EQ(char_gpt_stages2_save_weights(stage.model, "/nowhere", &stage.error), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(stage.error.message, "save_weights: layers missing; expected all, got those of stage 1 of 2");
}

} // namespace
} // namespace kiln::test
