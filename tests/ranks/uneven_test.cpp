// SPDX-License-Identifier: Apache-2.0
// Pipeline stages with unequal numbers of layers: what they compute, train and save compared with one process, the
// tensors that each stage has, and their sizes.
#include <set>
#include <string>

#include "../seed.h"
#include "folder_test.h"
#include "gpt2_stages2.h"
#include "gpt2_writer.h"
#include "guarded_image.h"
#include "llama_stages3.h"
#include "llama_writer.h"
#include "staged_writer.h"
#include "trained.h"
#include "trained2_grid_of_two.h"
#include "trained4.h"
#include "trained4_stages2.h"
#include "trained5.h"
#include "trained5_stages3.h"
#include "trained5_stages4.h"
#include "uneven.h"
#include "uneven_stages5.h"

namespace kiln::test {
namespace {

WRITER(gpt2_writer, GPT2_WRITER);
WRITER(gpt2_stages2, GPT2_STAGES2);
WRITER(llama_writer, LLAMA_WRITER);
WRITER(llama_stages3, LLAMA_STAGES3);
WRITER(uneven, UNEVEN);
WRITER(uneven_stages5, UNEVEN_STAGES5);

class UnevenStages : public FolderTest {
protected:
  /// Writes a weight file for the model of uneven.cpp, and returns its path.
  std::string unevenWeights() const {
    testing::WeightImage image(std::vector<testing::WeightShape>{UNEVEN_WEIGHTS(KILN_TEST_WEIGHT)});
    std::ofstream(at("uneven"), std::ios::binary)
        .write(image.characters().data(), static_cast<std::streamsize>(image.size()));
    return at("uneven");
  }
};

// Three layers on two stages; four on three; six on five, where the middle stages differ in their numbers of layers of
// both stacks.
TEST_F(UnevenStages, WriteTheSameBits) {
  expectSame<gpt2_writer, gpt2_stages2>(KILN_EXAMPLES "/gpt2/king_james/model.safetensors", 2000, 2, 3);
  expectSame<llama_writer, llama_stages3>(KILN_EXAMPLES "/llama/king_james/model.safetensors", 2000, 3, 4);
  expectSame<uneven, uneven_stages5>(unevenWeights(), 99, 5, 6);
}

constexpr uint32_t five = 5;
/// For each of the five stages: the number of layers of "h" and of "deep".
constexpr uint32_t layersOf[five][2] = {{1, 1}, {1, 1}, {1, 2}, {2, 2}, {1, 1}};

/// Whether one of five stages has a tensor of the model, whose stacks have 6 and 7 layers.
bool hasTensor(uint32_t stage, const std::string &tensor) {
  for (const int stack : {0, 1}) {
    const std::string scope = stack ? "deep." : "h.";
    if (tensor.rfind(scope, 0) != 0)
      continue;
    uint32_t first = 0;
    for (uint32_t before = 0; before < stage; ++before)
      first += layersOf[before][stack];
    const auto layer = static_cast<uint32_t>(tensor[scope.size()] - '0');
    return layer >= first && layer < first + layersOf[stage][stack];
  }
  return (tensor == "words.weight" && stage == 0) || stage + 1 == five;
}

/// One of five stages.
struct UnevenStage {
  explicit UnevenStage(const kiln_communicator_t &stages)
      : arena((UNEVEN_STAGES5_CLASSIFY_ARENA_BYTES(1) + 63) / 64 * 64) {
    kiln_options_t options{};
    options.stage = stages.rank;
    options.stages = stages.size;
    EXPECT_EQ(uneven_stages5_create_on(&options, &model, &error), KILN_OK) << error.message;
    call = {arena.data, arena.bytes, nullptr, &error};
    call.stages = &stages;
  }
  ~UnevenStage() { uneven_stages5_destroy(model); }
  UnevenStage(const UnevenStage &) = delete;

  kiln_error_t error{};
  uneven_stages5_t *model = nullptr;
  const Memory arena;
  kiln_call_t call{};
};

// A stage reads no page of other stages' layers, and does not offer these layers afterwards.
TEST_F(UnevenStages, HaveTheirLayersAlone) {
  const Image all(unevenWeights());
  ThreadRanks stages(five);
  constexpr size_t packedHead = 4096;
  std::vector<size_t> packed;
  for (uint32_t number = 0; number < five; ++number) {
    const kiln_communicator_t peer = stages.communicator(number);
    UnevenStage stage(peer);
    Image image(at("uneven"));
    EXPECT_GT(image.forbid([&](const std::string &name) { return hasTensor(number, name); }), 100U);
    ASSERT_EQ(uneven_stages5_bind_weights_from_memory(stage.model, image.data, image.size, &stage.error), KILN_OK)
        << stage.error.message;
    for (const auto &[name, range] : all.tensors) {
      std::vector<char> row(range.second - range.first);
      const kiln_status_t status =
          uneven_stages5_read_weight(stage.model, name.c_str(), 0, 1, row.data(), &stage.error);
      EXPECT_EQ(status, hasTensor(number, name) ? KILN_OK : KILN_WEIGHT_MISSING) << name << " on " << number;
      if (status == KILN_OK)
        EXPECT_EQ(std::memcmp(row.data(), all.data + range.first, sizeof(float)), 0) << name;
    }
    ASSERT_EQ(uneven_stages5_save_packed(stage.model, at("packed").c_str(), &stage.error), KILN_OK);
    packed.push_back(std::filesystem::file_size(at("packed")) - packedHead);
  }
  // There is no room for layers that a stage does not have.
  EXPECT_EQ(packed[3], 2 * packed[1]);
  EXPECT_LT(packed[1], packed[2]);
  EXPECT_LT(packed[2], packed[3]);
  EXPECT_EQ(*std::max_element(packed.begin(), packed.end()), UNEVEN_STAGES5_WEIGHT_BYTES);
}

// An entry that uses the other stack. A trace numbers the layers of the whole model.
TEST_F(UnevenStages, ClassifyTheSameBits) {
  const std::string weights = unevenWeights();
  std::vector<float> x(3 * 64), wanted(3 * 5), got(wanted.size(), NAN);
  std::mt19937 random(7);
  for (float &value : x)
    value = std::uniform_real_distribution<float>(-1, 1)(random);
  uneven_t *one = nullptr;
  ASSERT_EQ(uneven_create(nullptr, &one, nullptr), KILN_OK);
  ASSERT_EQ(uneven_bind_weights(one, weights.c_str(), nullptr), KILN_OK);
  const Memory arena((UNEVEN_CLASSIFY_ARENA_BYTES(1) + 63) / 64 * 64);
  const kiln_call_t call{arena.data, arena.bytes, nullptr, nullptr};
  ASSERT_EQ(uneven_classify(one, &call, x.data(), wanted.data()), KILN_OK);
  uneven_destroy(one);
  std::set<int64_t> seen[five];
  ThreadRanks stages(five);
  stages.run([&](uint32_t number) {
    const kiln_communicator_t peer = stages.communicator(number);
    UnevenStage stage(peer);
    ASSERT_EQ(uneven_stages5_bind_weights(stage.model, weights.c_str(), &stage.error), KILN_OK);
    const kiln_trace_t trace{&seen[number],
                             [](void *self, const kiln_event_t *event) {
                               if (event->number >= 0)
                                 static_cast<std::set<int64_t> *>(self)->insert(event->number);
                             },
                             [](void *, const kiln_event_t *) {}};
    stage.call.trace = &trace;
    EXPECT_EQ(uneven_stages5_classify(stage.model, &stage.call, x.data(), number + 1 == five ? got.data() : nullptr),
              KILN_OK)
        << stage.error.message;
  });
  EXPECT_TRUE(isSame(got, wanted));
  const std::set<int64_t> layers[five] = {{0}, {1}, {2, 3}, {4, 5}, {6}};
  for (uint32_t number = 0; number < five; ++number)
    EXPECT_EQ(seen[number], layers[number]) << number;
}

KILN_TRAINED(trained4, TRAINED4);
KILN_TRAINED(trained5, TRAINED5);
KILN_TRAINED_TOGETHER(trained4_stages2, TRAINED4_STAGES2);
KILN_TRAINED_TOGETHER(trained5_stages3, TRAINED5_STAGES3);
KILN_TRAINED_TOGETHER(trained5_stages4, TRAINED5_STAGES4);
KILN_TRAINED_TOGETHER(trained2_grid_of_two, TRAINED2_GRID_OF_TWO);

/// Compares all processes with one: losses and norms; the loss of the evaluation on the last stage; weights on the
/// stages that have them.
template <class Api> void expectOneProcess(const Grid &grid, const Inputs &inputs, const std::vector<float> &wanted) {
  std::vector<std::vector<float>> got(grid.ranks * grid.replicas * grid.stages);
  runGrid(grid, [&](uint32_t process, const Place &place) { got[process] = train<Api>(inputs, place); });
  for (size_t i = 0; i < wanted.size(); ++i) {
    size_t known = 0;
    for (const std::vector<float> &each : got)
      if (!std::isnan(each[i])) {
        EXPECT_NEAR(each[i], wanted[i], 1e-4 * std::abs(wanted[i]) + 1e-5) << i;
        ++known;
      }
    EXPECT_GE(known, i < 2 * steps ? got.size() : 1) << i;
  }
}

// Dropout, micro-batches, a table on the first and the last stage; gradient-descent steps recompute layers.
TEST_F(UnevenStages, TrainAsOneProcess) {
  const uint32_t seed = testing::testSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const Inputs inputs(seed, 4);
  const std::vector<float> three = train<trained4>(inputs), five = train<trained5>(inputs);
  expectOneProcess<trained4_stages2>({1, 1, 2}, inputs, three);
  expectOneProcess<trained2_grid_of_two>({2, 2, 2}, inputs, three);
  expectOneProcess<trained5_stages3>({1, 1, 3}, inputs, five);
  expectOneProcess<trained5_stages4>({1, 1, 4}, inputs, five);
}

// Five layers on three stages: 2, 2 and 1. On four stages, the third one has two layers, and it does not have the
// table.
TEST_F(UnevenStages, HaveSharesOfTheOptimiserState) {
  constexpr size_t width = 16, hidden = 2048, table = classes * width, norm = 2 * width;
  constexpr size_t layer = norm + hidden * (2 * width + 1) + width + width * width + width;
  EXPECT_EQ(trained5::trainingBytes, markBytes + 2 * sizeof(float) * (table + 5 * layer + norm));
  EXPECT_EQ(trained5_stages3::trainingBytes, markBytes + 2 * sizeof(float) * (table + 2 * layer));
  EXPECT_EQ(trained5_stages4::trainingBytes, markBytes + 2 * sizeof(float) * 2 * layer);
  EXPECT_EQ(trained4_stages2::trainingBytes, markBytes + 2 * sizeof(float) * (table + 2 * layer));
  EXPECT_EQ(trained5_stages4::weightBytes, sizeof(float) * 2 * layer);
}

constexpr int32_t half = 5;

/// Saves the state of a process after a few steps, or after loading `from`.
template <class Api, class Save>
void saveProcess(const Place &place, const Inputs &inputs, const std::string &from, const Save &save) {
  TrainedProcess<Api> process(inputs, place);
  if (from.empty())
    process.train(half);
  else
    process.check(Api::load(process.model.get(), process.call.arena, &process.training, from.c_str(), &process.error));
  EXPECT_EQ(process.training.step, half);
  process.check(save(process));
}
template <class Api>
void saveTogether(const Grid &grid, const Inputs &inputs, const std::string &from, const std::string &to) {
  runGrid(grid, [&](uint32_t number, const Place &place) {
    saveProcess<Api>(place, inputs, from, [&](auto &process) {
      return Api::save(process.model.get(), &process.call, &process.training, number ? nullptr : to.c_str());
    });
  });
}
template <class Api> void saveOne(const Inputs &inputs, const std::string &from, const std::string &to) {
  saveProcess<Api>({}, inputs, from, [&](auto &process) {
    return Api::saveAlone(process.model.get(), process.call.arena, &process.training, to.c_str(), &process.error);
  });
}

// Other configurations load what some have saved, and save the same bytes.
TEST_F(UnevenStages, HaveFilesOfOneProcess) {
  const Inputs inputs(7, 4);
  saveTogether<trained5_stages4>({1, 1, 4}, inputs, "", at("four"));
  saveTogether<trained5_stages3>({1, 1, 3}, inputs, at("four"), at("three"));
  EXPECT_TRUE(bytes("three") == bytes("four"));
  saveOne<trained5>(inputs, at("three"), at("one"));
  EXPECT_TRUE(bytes("one") == bytes("four"));
  saveTogether<trained5_stages4>({1, 1, 4}, inputs, at("one"), at("again"));
  EXPECT_TRUE(bytes("again") == bytes("one"));
  saveTogether<trained2_grid_of_two>({2, 2, 2}, inputs, "", at("grid"));
  saveTogether<trained4_stages2>({1, 1, 2}, inputs, at("grid"), at("two"));
  EXPECT_TRUE(bytes("two") == bytes("grid"));
  saveOne<trained4>(inputs, at("two"), at("one"));
  EXPECT_TRUE(bytes("one") == bytes("grid"));
}

// Three stages resume a training of four stages and end where one process does.
TEST_F(UnevenStages, GoOnWithAnotherNumber) {
  const Inputs inputs(8, 4);
  TrainedProcess<trained5> whole(inputs);
  whole.train(static_cast<int32_t>(steps));
  const std::vector<float> wanted(whole.results.begin() + half * 2, whole.results.end());
  saveTogether<trained5_stages4>({1, 1, 4}, inputs, "", at("half"));
  runGrid({1, 1, 3}, [&](uint32_t, const Place &place) {
    TrainedProcess<trained5_stages3> process(inputs, place);
    process.check(trained5_stages3::load(process.model.get(), process.call.arena, &process.training, at("half").c_str(),
                                         &process.error));
    process.train(static_cast<int32_t>(steps));
    expectNear(process.results, wanted);
  });
}

} // namespace
} // namespace kiln::test
