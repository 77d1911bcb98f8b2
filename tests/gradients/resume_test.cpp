// SPDX-License-Identifier: Apache-2.0
//
// Interrupted trainings: a checkpoint is loaded into another model, which continues with the same bits.
#include "adapters.h"
#include "compiled.h"
#include "dropped.h"
#include "training.h"

#include <filesystem>
#include <fstream>

namespace kiln::testing {
namespace {

using fuzz::CompiledModel;

const interpreter::Extents sevenRows{{"rows", 7}};

/// A training from its initial weights. Only the most recent instance may be used, since it has bound its weights to
/// the library.
class TrainingRun {
public:
  TrainingRun(const Graph &graph, CompiledModel &library, const std::string &entry, unsigned workers)
      : model(graph, 21), compiled(bound(library)),
        session(compiled,
                {.order = workers > 1 ? fuzz::TaskOrder::Threads : fuzz::TaskOrder::Serial, .workers = workers}) {
    while (graph.entries[number].name != entry)
      ++number;
  }

  /// The inputs depend on the step only.
  void step(const kiln_training_t &training) {
    const std::string said = llvm::toString(tryStep(training));
    EXPECT_EQ(said, "");
  }
  llvm::Error tryStep(const kiln_training_t &training) {
    std::mt19937 random(static_cast<unsigned>(training.step));
    CompiledModel::Buffers bytes;
    const Region &region = model.graph.regions[model.graph.entries[number].region];
    for (int argument : region.arguments) {
      const Node &node = model.graph.nodes[argument];
      std::vector<std::int64_t> shape;
      for (const Dim &dim : node.shape)
        shape.push_back(dim.fixed() ? dim.offset : 7);
      Tensor input = draw(shape, random);
      if (node.element == ElementType::i32)
        input = integers(shape, {0, 1, 2, double(random() % 7), 4, double(random() % 7), 6});
      bytes.push_back(fuzz::toBytes(input));
    }
    bytes.push_back(fuzz::toBytes(Tensor::of(ElementType::f32, {}, {0.02})));
    bytes.push_back(fuzz::toBytes(integers({}, {double(training.step)})));
    if (has_dropout(model.graph, model.graph.entries[number].region))
      bytes.push_back(fuzz::toBytes(integers({}, {double(training.seed)})));
    return session.call(number, sevenRows, bytes).takeError();
  }
  std::map<std::string, std::vector<double>> weights() {
    std::map<std::string, std::vector<double>> all;
    for (const auto &[name, weight] : model.weights) {
      llvm::Expected<Tensor> got = compiled.read(name, weight.shape);
      EXPECT_TRUE(static_cast<bool>(got)) << llvm::toString(got.takeError());
      all[name] = got->values;
    }
    return all;
  }

  Differentiated model;
  CompiledModel &compiled;
  CompiledModel::Session session;

private:
  CompiledModel &bound(CompiledModel &library) {
    llvm::Error unbound = library.bind(model.weights);
    EXPECT_FALSE(unbound) << llvm::toString(std::move(unbound));
    return library;
  }

  std::size_t number = 0;
};

class Resume : public ::testing::Test {
protected:
  Resume() {
    folder = std::filesystem::temp_directory_path() / ("kiln_resume_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
  }
  ~Resume() override { std::filesystem::remove_all(folder); }
  std::string file(const char *name) const { return (folder / name).string(); }

  /// Runs six steps and saves after the third; then resumes from there with another number of workers.
  template <class Model> void expectTheSame(const std::string &entry) {
    SCOPED_TRACE(entry);
    const Graph graph = trace<Model>();
    const std::string path = file("training.safetensors");
    kiln_training_t training{0, -77};
    auto steps = [&](TrainingRun &run, int last) {
      while (training.step < last) {
        ++training.step;
        run.step(training);
      }
    };
    TrainingRun through(graph, libraryOf<Model>(), entry, 1);
    steps(through, 3);
    llvm::Error unsaved = through.session.saveTraining(path, training);
    ASSERT_FALSE(unsaved) << llvm::toString(std::move(unsaved));
    steps(through, 6);
    const auto weights = through.weights();

    TrainingRun resumed(graph, libraryOf<Model>(), entry, 3);
    llvm::Expected<kiln_training_t> loaded = resumed.session.loadTraining(path);
    ASSERT_TRUE(static_cast<bool>(loaded)) << llvm::toString(loaded.takeError());
    EXPECT_EQ(loaded->step, 3);
    EXPECT_EQ(loaded->seed, -77);
    training = *loaded;
    steps(resumed, 6);
    EXPECT_EQ(resumed.weights(), weights);
    // Except for the marks of begun states, which loading a file always sets.
    const std::vector<char> &got = resumed.session.states(), &wanted = through.session.states();
    ASSERT_EQ(got.size(), wanted.size());
    EXPECT_TRUE(std::equal(got.begin() + KILN_MARK_BYTES, got.end(), wanted.begin() + KILN_MARK_BYTES));
  }

  std::filesystem::path folder;
};

TEST_F(Resume, GoesOnToTheSameBits) {
  for (const char *entry : {"adamw", "averaged"})
    expectTheSame<specs::ResumedModel>(entry);
  expectTheSame<specs::Dropped>("train");
}

/// Frozen weights are bound from their file, and are not part of a checkpoint.
TEST_F(Resume, AdaptersAlone) {
  using Model = specs::Adapted<kiln::int8>;
  expectTheSame<Model>("train");
  std::ifstream file(this->file("training.safetensors"), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(bytes.find("\"h.1.lora_a.weight\""), std::string::npos);
  EXPECT_EQ(bytes.find("\"h.1.base.weight\""), std::string::npos);

  llvm::Expected<CompiledModel> unbound = CompiledModel::compile(trace<Model>(), runnableTargets().front());
  ASSERT_TRUE(static_cast<bool>(unbound)) << llvm::toString(unbound.takeError());
  EXPECT_NE(llvm::toString(unbound->bind({})).find("missing"), std::string::npos); // created, not bound
  CompiledModel::Session session(*unbound, {});
  llvm::Expected<kiln_training_t> loaded = session.loadTraining(this->file("training.safetensors"));
  ASSERT_FALSE(static_cast<bool>(loaded));
  const std::string said = llvm::toString(loaded.takeError());
  EXPECT_NE(said.find("load_training: no weights; expected bound ones"), std::string::npos) << said;
}

/// A file that cannot be loaded changes neither weights nor states.
TEST_F(Resume, RefusesOtherFiles) {
  const Graph graph = trace<specs::ResumedModel>();
  TrainingRun training(graph, libraryOf<specs::ResumedModel>(), "adamw", 1);
  training.step({1, 0});
  llvm::Error unsaved = training.session.saveTraining(file("whole"), {1, 0});
  ASSERT_FALSE(unsaved) << llvm::toString(std::move(unsaved));
  std::ifstream whole(file("whole"), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(whole), {}};
  auto write = [&](const char *name, const std::string &text) {
    std::ofstream(file(name), std::ios::binary) << text;
    return file(name);
  };
  auto renamed = [&](const std::string &from, const std::string &to) {
    std::string text = bytes;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  std::string weightsOnly = renamed("training:step", "training-step");
  weightsOnly.replace(weightsOnly.find("training:seed"), 13, "training-seed");
  const auto weights = training.weights();
  const std::vector<char> states = training.session.states();
  const std::pair<std::string, std::string> cases[] = {
      {write("cut", bytes.substr(0, bytes.size() - 8)), ""},
      {write("no_step", renamed("training:step", "training:stop")),
       "tensor \"training:step\": not found; expected shape [] and type I32"},
      {write("no_mean", renamed("mean:gain", "mean:lain")), "tensor \"mean:gain\": not found; expected shape [1]"},
      {write("unknown", renamed("\"words.weight\":", "\"words.weigth\":")), ""},
      {write("of_weights", weightsOnly), "load_training: a file without \"training:step\"; expected one of "
                                         "save_training, got weights, which bind_weights reads"},
      {file("absent"), "cannot open weight file"}};
  for (const auto &[path, words] : cases) {
    SCOPED_TRACE(path);
    llvm::Expected<kiln_training_t> loaded = training.session.loadTraining(path);
    ASSERT_FALSE(static_cast<bool>(loaded));
    const std::string said = llvm::toString(loaded.takeError());
    EXPECT_NE(said.find(words), std::string::npos) << said;
    EXPECT_EQ(training.weights(), weights);
    EXPECT_EQ(training.session.states(), states);
  }
}

/// Arenas with neither zeros nor the state of a training, in all bytes or in the optimiser state only, are refused.
TEST_F(Resume, RefusesWhatNoTrainingLeft) {
  const Graph graph = trace<specs::ResumedModel>();
  TrainingRun training(graph, libraryOf<specs::ResumedModel>(), "adamw", 1);
  training.step({1, 0});
  const auto weights = training.weights();
  std::vector<char> &states = training.session.states();
  const std::vector<char> before = states;
  auto refuses = [&](llvm::Error error) {
    const std::string said = llvm::toString(std::move(error));
    EXPECT_NE(said.find("expected training states of zeros or earlier calls"), std::string::npos) << said;
    EXPECT_EQ(training.weights(), weights);
  };
  for (size_t first : {size_t{0}, size_t{KILN_MARK_BYTES}, states.size() - 1}) {
    SCOPED_TRACE(first);
    std::fill(states.begin(), states.end(), '\0');
    std::fill(states.begin() + first, states.end(), '\x7f');
    refuses(training.tryStep({2, 0}));
    refuses(training.session.saveTraining(file("none"), {1, 0}));
    refuses(training.session.swapAverage());
    EXPECT_FALSE(std::filesystem::exists(file("none")));
  }
  states = before;
  training.step({2, 0});
  llvm::Error unbegun = training.session.beginTraining();
  ASSERT_FALSE(unbegun) << llvm::toString(std::move(unbegun));
  EXPECT_TRUE(std::all_of(states.begin() + KILN_MARK_BYTES, states.end(), [](char byte) { return byte == 0; }));
  training.step({1, 0});
}

TEST_F(Resume, AveragesTakeThePlaceOfWeights) {
  const Graph graph = trace<specs::ResumedModel>();
  TrainingRun training(graph, libraryOf<specs::ResumedModel>(), "averaged", 1);
  for (int step = 1; step <= 4; ++step)
    training.step({step, 0});
  const auto weights = training.weights();
  auto average = [&](const std::string &name, const std::string &state, std::int64_t copy) {
    const StateInterface *place = training.compiled.interface().findState("average:" + state);
    std::vector<double> values;
    for (std::size_t i = 0; i < weights.at(name).size(); ++i) {
      float value;
      std::memcpy(&value, training.session.states().data() + place->offset + copy * place->stride + i * sizeof value,
                  sizeof value);
      values.push_back(value);
    }
    return values;
  };
  const std::vector<double> table = average("words.weight", "words.weight", 0),
                            inner = average("h.1.inner.0.up.weight", "h.{}.inner.{}.up.weight", 2);
  llvm::Error failed = training.session.swapAverage();
  ASSERT_FALSE(failed) << llvm::toString(std::move(failed));
  EXPECT_EQ(training.weights().at("words.weight"), table);
  EXPECT_EQ(training.weights().at("h.1.inner.0.up.weight"), inner);
  EXPECT_NE(training.weights(), weights);
  failed = training.session.swapAverage();
  ASSERT_FALSE(failed) << llvm::toString(std::move(failed));
  EXPECT_EQ(training.weights(), weights);
}

} // namespace
} // namespace kiln::testing
