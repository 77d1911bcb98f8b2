// SPDX-License-Identifier: Apache-2.0
// Weight files and checkpoints that pipeline stages write together and load their layers from equal those of one
// process, byte for byte.
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include "char_gpt.h"
#include "char_gpt_grid.h"
#include "char_gpt_stages2.h"
#include "folder_test.h"
#include "gpt2_stages3.h"
#include "gpt2_writer.h"
#include "trained.h"
#include "trained2_grid.h"
#include "trained4.h"
#include "trained4_stages3.h"

namespace kiln::test {
namespace {

class StagesFiles : public FolderTest {};

#define SAVER(name)                                                                                                    \
  struct name {                                                                                                        \
    using Model = name##_t;                                                                                            \
    static constexpr auto create = name##_create_on;                                                                   \
    static constexpr auto destroy = name##_destroy;                                                                    \
    static constexpr auto bind = name##_bind_weights;                                                                  \
    static constexpr auto saveAlone = name##_save_weights
#define STAGED_SAVER(name)                                                                                             \
  SAVER(name);                                                                                                         \
  static constexpr auto save = name##_save_weights_together;                                                           \
  }
SAVER(char_gpt);
};
SAVER(gpt2_writer);
};
STAGED_SAVER(char_gpt_stages2);
STAGED_SAVER(char_gpt_grid);
STAGED_SAVER(gpt2_stages3);

const std::string charGpt = KILN_EXAMPLES "/char_gpt/char_gpt.safetensors";
const std::string gpt2 = KILN_EXAMPLES "/gpt2/king_james/model.safetensors";

template <class Api> using Handle = std::unique_ptr<typename Api::Model, void (*)(typename Api::Model *)>;

/// Creates a model and binds it to a file.
template <class Api> Handle<Api> makeModel(const kiln_options_t &options, const std::string &weights) {
  kiln_error_t error{};
  typename Api::Model *made = nullptr;
  EXPECT_EQ(Api::create(&options, &made, &error), KILN_OK) << error.message;
  Handle<Api> model(made, Api::destroy);
  EXPECT_EQ(Api::bind(made, weights.c_str(), &error), KILN_OK) << error.message;
  return model;
}

/// The processes save together the weights that they have bound.
template <class Api> void saveTogether(const Grid &grid, const std::string &weights, const std::string &path) {
  runGrid(grid, [&](uint32_t process, const Place &place) {
    kiln_error_t error{};
    const Handle<Api> model = makeModel<Api>(optionsOf(place), weights);
    kiln_call_t call{};
    call.error = &error;
    call.communicator = place.ranks;
    call.stages = place.stages;
    EXPECT_EQ(Api::save(model.get(), &call, process ? nullptr : path.c_str()), KILN_OK) << error.message;
    EXPECT_EQ(Api::saveAlone(model.get(), path.c_str(), &error), KILN_INVALID_ARGUMENT);
  });
}

// Layers of all stages; a tied table, which the first and the last stage have; slices of tensor-parallel ranks.
TEST_F(StagesFiles, OfWeightsAreThoseOfOneProcess) {
  EXPECT_EQ(char_gpt::saveAlone(makeModel<char_gpt>({}, charGpt).get(), at("one").c_str(), nullptr), KILN_OK);
  saveTogether<char_gpt_stages2>({1, 1, 2}, charGpt, at("staged"));
  EXPECT_TRUE(bytes("staged") == bytes("one"));
  saveTogether<char_gpt_grid>({2, 1, 2}, charGpt, at("grid"));
  EXPECT_TRUE(bytes("grid") == bytes("one"));
  EXPECT_EQ(gpt2_writer::saveAlone(makeModel<gpt2_writer>({}, gpt2).get(), at("one").c_str(), nullptr), KILN_OK);
  saveTogether<gpt2_stages3>({1, 1, 3}, gpt2, at("tied"));
  EXPECT_TRUE(bytes("tied") == bytes("one"));
}

KILN_TRAINED(trained4, TRAINED4);
KILN_TRAINED_TOGETHER(trained4_stages3, TRAINED4_STAGES3);
KILN_TRAINED_TOGETHER(trained2_grid, TRAINED2_GRID);

constexpr int32_t half = 5;

template <class Api> void load(TrainedProcess<Api> &process, const std::string &path) {
  process.check(Api::load(process.model.get(), process.call.arena, &process.training, path.c_str(), &process.error));
  EXPECT_EQ(process.training.step, half);
}

/// Trains some steps, or loads `from` if that is given; then saves to `to`.
void saveOne(const Inputs &inputs, const char *from, const std::string &to) {
  TrainedProcess<trained4> process(inputs);
  if (from)
    load(process, from);
  else
    process.train(half);
  process.check(
      trained4::saveAlone(process.model.get(), process.call.arena, &process.training, to.c_str(), &process.error));
}
template <class Api> void saveStages(const Grid &grid, const Inputs &inputs, const char *from, const std::string &to) {
  runGrid(grid, [&](uint32_t number, const Place &place) {
    TrainedProcess<Api> process(inputs, place);
    if (from)
      load(process, from);
    else
      process.train(half);
    process.check(Api::save(process.model.get(), &process.call, &process.training, number ? nullptr : to.c_str()));
  });
}

// One process, and a grid with sharded optimiser state, load what stages have saved and save the same bytes; and the
// reverse.
TEST_F(StagesFiles, OfTrainingsAreThoseOfOneProcess) {
  const Inputs inputs(7, 4);
  saveStages<trained4_stages3>({1, 1, 3}, inputs, nullptr, at("stages"));
  saveOne(inputs, at("stages").c_str(), at("again"));
  EXPECT_TRUE(bytes("again") == bytes("stages"));
  saveStages<trained2_grid>({2, 2, 3}, inputs, at("stages").c_str(), at("grid"));
  EXPECT_TRUE(bytes("grid") == bytes("stages"));
  saveOne(inputs, nullptr, at("one"));
  EXPECT_FALSE(bytes("one") == bytes("stages")) << "sums of stages round otherwise";
  saveStages<trained4_stages3>({1, 1, 3}, inputs, at("one").c_str(), at("again"));
  EXPECT_TRUE(bytes("again") == bytes("one"));
}

// Every configuration resumes from the checkpoint with the same results.
TEST_F(StagesFiles, OfTrainingsAreGoneOnFrom) {
  const Inputs inputs(8, 4);
  TrainedProcess<trained4> whole(inputs);
  whole.train(static_cast<int32_t>(steps));
  const std::vector<float> wanted(whole.results.begin() + half * 2, whole.results.end());
  saveStages<trained4_stages3>({1, 1, 3}, inputs, nullptr, at("half"));
  TrainedProcess<trained4> one(inputs);
  load(one, at("half"));
  one.train(static_cast<int32_t>(steps));
  expectNear(one.results, wanted);
  runGrid({1, 1, 3}, [&](uint32_t, const Place &place) {
    TrainedProcess<trained4_stages3> process(inputs, place);
    load(process, at("half"));
    process.train(static_cast<int32_t>(steps));
    expectNear(process.results, wanted);
  });
}

// The last stage has the tied table, one layer and a norm: two optimiser values for each parameter.
TEST_F(StagesFiles, HaveSharesOfTheOptimiserState) {
  constexpr size_t width = 16, hidden = 2048, table = classes * width, norm = 2 * width;
  constexpr size_t layer = norm + hidden * (2 * width + 1) + width + width * width + width;
  EXPECT_EQ(trained4::trainingBytes, markBytes + 2 * sizeof(float) * (table + 3 * layer + norm));
  EXPECT_EQ(trained4_stages3::trainingBytes, markBytes + 2 * sizeof(float) * (table + layer + norm));
}

/// Expects what all stages return if one of them fails, and that the previous file is still there.
void expectFailure(const std::string &path, kiln_status_t status, const std::string &words,
                   const std::function<void(uint32_t stage, TrainedProcess<trained4_stages3> &)> &spoil) {
  const Inputs inputs(9, 4);
  runGrid({1, 1, 3}, [&](uint32_t stage, const Place &place) {
    TrainedProcess<trained4_stages3> process(inputs, place);
    spoil(stage, process);
    EXPECT_EQ(trained4_stages3::save(process.model.get(), &process.call, &process.training, path.c_str()), status);
    EXPECT_NE(std::string(process.error.message).find(words), std::string::npos) << process.error.message;
  });
}

TEST_F(StagesFiles, AFailureIsThatOfAll) {
  std::ofstream(at("file")) << "old";
  expectFailure(at("missing/file"), KILN_FILE_ERROR,
                "save_training_together failed on stage 0 of 3: cannot create weight file \"", [](uint32_t, auto &) {});
  expectFailure(at("file"), KILN_ARENA_TOO_SMALL,
                "save_training_together failed on stage 2 of 3: save_training_together: arena too small; expected " +
                    std::to_string(trained4_stages3::trainingBytes) + " bytes, got 64",
                [](uint32_t stage, auto &process) {
                  if (stage == 2)
                    process.call.arena_bytes = 64;
                });
  EXPECT_EQ(bytes("file"), "old");
}

TEST_F(StagesFiles, AreRefusedOfOtherStages) {
  ThreadRanks stages(2);
  const kiln_communicator_t first = stages.communicator(0);
  kiln_error_t error{};
  kiln_options_t options{};
  options.stage = 1;
  options.stages = 2;
  const Handle<char_gpt_stages2> model = makeModel<char_gpt_stages2>(options, charGpt);
  kiln_call_t call{};
  call.error = &error;
  EXPECT_EQ(char_gpt_stages2::save(model.get(), &call, nullptr), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(error.message,
               "save_weights_together: null given; expected a communicator of stages with begin and finish");
  call.stages = &first;
  EXPECT_EQ(char_gpt_stages2::save(model.get(), &call, nullptr), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message,
               "save_weights_together: wrong communicator; expected stage 1 of 2, as its model, got stage 0");
}

} // namespace
} // namespace kiln::test
