// SPDX-License-Identifier: Apache-2.0
// Checkpoints of an interrupted tensor-parallel training: four ranks save, and four, two or one resume; one process
// saves, and ranks resume. The model has its queries, keys and values in one weight, with unequal widths.
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

#include "folder_test.h"
#include "joint.h"
#include "joint_ranks2.h"
#include "joint_ranks4.h"
#include "joint_strict1.h"
#include "joint_strict2.h"
#include "joint_strict4.h"
#include "joint_strict8.h"
#include "session.h"
#include "thread_ranks.h"
#include "trainer.h"
#include "writer.h"

namespace kiln::test {
namespace {

#define TRAINER(name, NAME)                                                                                            \
  struct name {                                                                                                        \
    KILN_TRAINER(name, NAME);                                                                                          \
    static constexpr auto decode = name##_decode;                                                                      \
    static constexpr auto load = name##_load_training;                                                                 \
    static constexpr size_t arenaBytes = NAME##_TRAIN_ARENA_BYTES(1);                                                  \
    static constexpr size_t decodeBytes = NAME##_DECODE_ARENA_BYTES(1), stateBytes = NAME##_STATE_BYTES;               \
    static kiln_status_t save(const Model *model, const kiln_call_t &call, const kiln_training_t &training,            \
                              const char *path) {                                                                      \
      return SAVE_##NAME;                                                                                              \
    }                                                                                                                  \
  }
#define SAVE_JOINT joint_save_training(model, call.arena, &training, path, call.error)
#define SAVE_JOINT_RANKS2 joint_ranks2_save_training_together(model, &call, &training, path)
#define SAVE_JOINT_RANKS4 joint_ranks4_save_training_together(model, &call, &training, path)
TRAINER(joint, JOINT);
TRAINER(joint_ranks2, JOINT_RANKS2);
TRAINER(joint_ranks4, JOINT_RANKS4);
#define SAVE_JOINT_STRICT1 joint_strict1_save_training(model, call.arena, &training, path, call.error)
#define SAVE_JOINT_STRICT2 joint_strict2_save_training_together(model, &call, &training, path)
#define SAVE_JOINT_STRICT4 joint_strict4_save_training_together(model, &call, &training, path)
#define SAVE_JOINT_STRICT8 joint_strict8_save_training_together(model, &call, &training, path)
TRAINER(joint_strict1, JOINT_STRICT1);
TRAINER(joint_strict2, JOINT_STRICT2);
TRAINER(joint_strict4, JOINT_STRICT4);
TRAINER(joint_strict8, JOINT_STRICT8);

constexpr int64_t batch = 3, steps = 12, vocabulary = 509;
constexpr int32_t half = 6, all = 12;

/// One process of a training.
template <class Api> class Training {
public:
  explicit Training(const kiln_communicator_t *communicator = nullptr)
      : arena((Api::arenaBytes + 63) / 64 * 64), decodeArena((Api::decodeBytes + 63) / 64 * 64) {
    kiln_options_t options{};
    if (communicator) {
      options.rank = communicator->rank;
      options.ranks = communicator->size;
    }
    typename Api::Model *made = nullptr;
    check(Api::create(&options, &made, &error));
    model.reset(made);
    const testing::WeightImage image(std::vector<testing::WeightShape>{JOINT_WEIGHTS(KILN_TEST_WEIGHT)});
    check(Api::bind(made, image.data(), image.size(), &error));
    std::memset(arena.data, 0, Api::trainingBytes);
    call = {arena.data, arena.bytes, nullptr, &error};
    call.communicator = communicator;
  }

  /// Trains up to step `last`; records losses and norms. The inputs are a function of the step.
  void train(int32_t last) {
    while (training.step < last) {
      const auto tokens = words(++training.step * 2), targets = words(training.step * 2 + 1);
      const float rate = 1e-2f;
      float loss = NAN, norm = NAN;
      check(Api::train(model.get(), &call, batch, tokens.data(), targets.data(), &rate, &training.step, &loss, &norm));
      numbers.insert(numbers.end(), {loss, norm});
    }
  }
  void evaluate() {
    const auto tokens = words(1000), targets = words(1001);
    numbers.push_back(NAN);
    check(Api::evaluate(model.get(), &call, batch, tokens.data(), targets.data(), &numbers.back()));
  }
  /// Decodes three tokens from a position of the context. The KV caches are copied from the training's arena and back.
  std::vector<float> decode(int64_t from) {
    std::vector<float> logits(vocabulary);
    kiln_call_t own = call;
    own.arena = decodeArena.data;
    own.arena_bytes = decodeArena.bytes;
    std::memcpy(decodeArena.data, arena.data, Api::stateBytes);
    for (int64_t at = from; at < from + 3; ++at) {
      const auto word = static_cast<int32_t>(at * 31 % vocabulary);
      check(Api::decode(model.get(), &own, at + 1, &word, logits.data()));
    }
    std::memcpy(arena.data, decodeArena.data, Api::stateBytes);
    return logits;
  }
  void save(const std::string &path) { check(Api::save(model.get(), call, training, path.c_str())); }
  void load(const std::string &path) {
    check(Api::load(model.get(), arena.data, &training, path.c_str(), &error));
    EXPECT_EQ(training.step, half);
    EXPECT_EQ(training.seed, 1611);
  }

  std::vector<float> numbers;

private:
  void check(kiln_status_t status) {
    if (status)
      throw std::runtime_error(error.message);
  }
  static std::vector<int32_t> words(int32_t seed) {
    auto state = static_cast<uint32_t>(seed) * 2654435761u + 17;
    std::vector<int32_t> result(batch * steps);
    for (int32_t &word : result)
      word = static_cast<int32_t>((state = state * 1664525u + 1013904223u) >> 8) % vocabulary;
    return result;
  }

  kiln_error_t error{};
  const Memory arena, decodeArena;
  std::unique_ptr<typename Api::Model, void (*)(typename Api::Model *)> model{nullptr, Api::destroy};
  kiln_call_t call{};
  kiln_training_t training{0, 1611};
};

/// Results of the second half of a training: losses and norms, the evaluation's loss, and the logits of decoding.
struct SecondHalf {
  std::vector<float> numbers, logits;
};

/// Trains the second half. With a path, the first half is loaded from that checkpoint; otherwise it is trained.
template <class Api> SecondHalf goOn(const std::string &path, const kiln_communicator_t *communicator = nullptr) {
  Training<Api> run(communicator);
  if (path.empty()) {
    run.train(half);
    run.decode(0);
    run.numbers.clear();
  } else {
    run.load(path);
  }
  SecondHalf result;
  run.train(all);
  run.evaluate();
  result.logits = run.decode(3);
  result.numbers = std::move(run.numbers);
  return result;
}

/// As goOn, with `count` ranks, which must all have the same bits.
template <class Api> SecondHalf goOnWith(uint32_t count, const std::string &path) {
  std::vector<SecondHalf> results(count);
  ThreadRanks ranks(count);
  ranks.run([&](uint32_t rank) {
    const kiln_communicator_t communicator = ranks.communicator(rank);
    results[rank] = goOn<Api>(path, &communicator);
  });
  for (const SecondHalf &each : results) {
    EXPECT_EQ(each.numbers, results[0].numbers);
    EXPECT_EQ(each.logits, results[0].logits);
  }
  return results[0];
}

/// Trains the first half and saves it.
template <class Api> void begin(const std::string &path, const kiln_communicator_t *communicator = nullptr) {
  Training<Api> run(communicator);
  run.train(half);
  run.decode(0);
  run.save(path);
}
template <class Api> void beginWith(uint32_t count, const std::string &path) {
  ThreadRanks ranks(count);
  ranks.run([&](uint32_t rank) {
    const kiln_communicator_t communicator = ranks.communicator(rank);
    begin<Api>(path, &communicator);
  });
}

void expectNear(const SecondHalf &got, const SecondHalf &wanted) {
  ASSERT_EQ(got.numbers.size(), wanted.numbers.size());
  for (size_t i = 0; i < wanted.numbers.size(); ++i) // losses and norms, then the evaluation's loss
    EXPECT_NEAR(got.numbers[i], wanted.numbers[i], (i % 2 == 0 ? 2e-4f : 1e-3f) * std::abs(wanted.numbers[i]) + 1e-5f)
        << i;
  EXPECT_LT(distance(got.logits, wanted.logits), 1e-3);
}
void expectSame(const SecondHalf &got, const SecondHalf &wanted) {
  EXPECT_EQ(got.numbers, wanted.numbers);
  EXPECT_EQ(got.logits, wanted.logits);
}

class RanksFiles : public FolderTest {};

TEST_F(RanksFiles, AreGoneOnFromByAnyNumberOfRanks) {
  const SecondHalf wanted = goOn<joint>("");
  ASSERT_EQ(wanted.numbers.size(), 2u * half + 1);
  beginWith<joint_ranks4>(4, at("four"));
  expectNear(goOn<joint>(at("four")), wanted);
  expectNear(goOnWith<joint_ranks2>(2, at("four")), wanted);
  expectNear(goOnWith<joint_ranks4>(4, at("four")), wanted);
  beginWith<joint_ranks2>(2, at("two"));
  expectNear(goOn<joint>(at("two")), wanted);
  begin<joint>(at("one"));
  expectNear(goOnWith<joint_ranks4>(4, at("one")), wanted);
  EXPECT_EQ(std::filesystem::file_size(at("four")), std::filesystem::file_size(at("one")));
}

// A checkpoint loses nothing: resuming with the same number of ranks gives the same bits.
TEST_F(RanksFiles, KeepEveryBit) {
  const SecondHalf wanted = goOnWith<joint_ranks4>(4, "");
  beginWith<joint_ranks4>(4, at("four"));
  expectSame(goOnWith<joint_ranks4>(4, at("four")), wanted);

  begin<joint>(at("one"));
  const SecondHalf one = goOn<joint>("");
  expectSame(goOn<joint>(at("one")), one);
  // Ranks that load a checkpoint of one process save the same bytes.
  ThreadRanks ranks(2);
  ranks.run([&](uint32_t rank) {
    const kiln_communicator_t communicator = ranks.communicator(rank);
    Training<joint_ranks2> run(&communicator);
    run.load(at("one"));
    run.save(at("again"));
  });
  EXPECT_TRUE(bytes("again") == bytes("one"));
  expectSame(goOn<joint>(at("again")), one);
}

// Sums in eight fixed parts: one, two, four and eight ranks have the same losses, norms, weights, optimiser state and
// KV caches.
TEST_F(RanksFiles, AreTheSameBytesOfSumsInParts) {
  begin<joint_strict1>(at("one"));
  beginWith<joint_strict2>(2, at("two"));
  beginWith<joint_strict4>(4, at("four"));
  beginWith<joint_strict8>(8, at("eight"));
  EXPECT_TRUE(bytes("two") == bytes("one"));
  EXPECT_TRUE(bytes("four") == bytes("one"));
  EXPECT_TRUE(bytes("eight") == bytes("one"));
  const SecondHalf wanted = goOn<joint_strict1>(at("four"));
  expectSame(goOnWith<joint_strict2>(2, at("one")), wanted);
  expectSame(goOnWith<joint_strict4>(4, at("eight")), wanted);
  expectSame(goOnWith<joint_strict8>(8, at("two")), wanted);
  expectNear(wanted, goOn<joint>(at("one")));

  begin<joint>(at("fast"));
  beginWith<joint_ranks2>(2, at("fast_two"));
  EXPECT_FALSE(bytes("fast_two") == bytes("fast"));
}

// Queries, keys and values of unequal widths are split correctly in either storage order of the weight.
TEST_F(RanksFiles, OfAModelThatIsSplit) {
  EXPECT_EQ(joint_ranks2::stateBytes - markBytes, (joint::stateBytes - markBytes) / 2);
  EXPECT_EQ(joint_ranks4::stateBytes - markBytes, (joint::stateBytes - markBytes) / 4);
  EXPECT_LT(joint_ranks2::trainingBytes, joint::trainingBytes * 55 / 100);
  EXPECT_LT(joint_ranks4::trainingBytes, joint::trainingBytes * 30 / 100);
}

} // namespace
} // namespace kiln::test
