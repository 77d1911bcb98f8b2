// SPDX-License-Identifier: Apache-2.0
//
// Training steps of compiled libraries compared with the optimisers' equations in f64, with gradients from the
// interpreter.
#include "differentiated.h"
#include "optimizer.h"
#include "tests/fuzz/CompiledModel.h"
#include "tests/models/counter.h"
#include "tests/models/golden.h"
#include "tests/targets/RunnableTargets.h"
#include "training.h"

namespace kiln::testing {
namespace {

using fuzz::CompiledModel;

constexpr std::int64_t rows = 7;
const interpreter::Extents extents{{"rows", rows}};

std::size_t entryNumber(const Graph &graph, const std::string &name) {
  for (std::size_t i = 0; i < graph.entries.size(); ++i)
    if (graph.entries[i].name == name)
      return i;
  throw std::runtime_error("no entry " + name);
}

/// Returns the gradients that an entry applies, from the gradient entry, by the names of the weight file.
Values gradientsFor(Differentiated &model, const Entry &entry, const std::vector<Tensor> &inputs) {
  const Entry &all = model.graph.entries[entryNumber(model.graph, "gradients")];
  const std::vector<verify::SharedTensor> results = model.run(all, extents, inputs);
  Values values;
  for (int number : gradient_parameters(model.graph, entry)) {
    const Parameter &parameter = model.graph.parameters[number];
    for (unsigned i = 1; i < results.size(); ++i) {
      if (model.resultName(all, i) != gradient_name(model.graph.name(parameter)))
        continue;
      const std::int64_t copies = model.graph.copies(parameter.scope), each = results[i]->size() / copies;
      for (std::int64_t copy = 0; copy < copies; ++copy)
        values[model.nameOf(parameter, copy)].assign(results[i]->values.begin() + copy * each,
                                                     results[i]->values.begin() + (copy + 1) * each);
    }
  }
  return values;
}

float floatOf(const std::vector<char> &bytes) {
  float value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::vector<Tensor> drawTokens(Differentiated &model) {
  std::vector<double> tokens, targets;
  for (std::int64_t i = 0; i < rows; ++i) {
    tokens.push_back(static_cast<double>(model.random() % 7));
    targets.push_back(static_cast<double>(model.random() % 7));
  }
  return {integers({rows}, tokens), integers({rows}, targets)};
}

/// The inputs of a call of an entry, and the means over its micro-batches, computed one by one.
struct MicroBatches {
  CompiledModel::Buffers bytes = CompiledModel::Buffers(2);
  std::vector<double> logits; // of entries that return them
  Values gradients;
  double loss = 0;

  MicroBatches(Differentiated &model, const Entry &entry) {
    const int count = std::max(entry.training.micro_batches, 1);
    for (int i = 0; i < count; ++i) {
      const std::vector<Tensor> inputs = drawTokens(model);
      for (std::size_t k = 0; k < inputs.size(); ++k) {
        const std::vector<char> own = fuzz::toBytes(inputs[k]);
        bytes[k].insert(bytes[k].end(), own.begin(), own.end());
      }
      loss += model.loss(entryNumber(model.graph, "gradients"), extents, inputs) / count;
      for (const auto &[name, values] : gradientsFor(model, entry, inputs)) {
        gradients[name].resize(values.size());
        for (std::size_t k = 0; k < values.size(); ++k)
          gradients[name][k] += values[k] / count;
      }
      if (entry.output_names.size() < 2)
        continue;
      interpreter::Interpreter run(model.graph, [&](const std::string &each) { return model.weights.at(each); });
      const Tensor own = run.run(entryNumber(model.graph, "logits"), extents, {inputs[0]})[0];
      logits.insert(logits.end(), own.values.begin(), own.values.end());
    }
  }
};

/// Moving averages of the weights, for comparison with those in a session's states.
class Averages {
public:
  Averages(const Differentiated &model, const Training &training) : model(model), decay(training.average) {}

  void step(const std::map<std::string, Tensor> &weights, int t) {
    for (const auto &[name, weight] : weights) {
      std::vector<double> &mean = means[name];
      mean.resize(weight.values.size());
      for (std::size_t i = 0; i < mean.size(); ++i)
        mean[i] = t == 1 ? weight.values[i] : decay * mean[i] + (1 - decay) * weight.values[i];
    }
  }
  void expect(const CompiledModel &compiled, const CompiledModel::Session &session) const {
    const std::vector<char> states = session.states();
    for (const Parameter &parameter : model.graph.parameters) {
      if (decay == 0)
        break;
      const StateInterface *state = compiled.interface().findState("average:" + model.graph.name(parameter));
      ASSERT_TRUE(state) << model.graph.name(parameter);
      for (std::int64_t copy = 0; copy < state->copies; ++copy) {
        const std::vector<double> &mean = means.at(model.nameOf(parameter, copy));
        for (std::size_t i = 0; i < mean.size(); ++i) {
          float value;
          std::memcpy(&value, states.data() + state->offset + copy * state->stride + i * sizeof value, sizeof value);
          EXPECT_NEAR(value, mean[i], 2e-5) << model.nameOf(parameter, copy) << " " << i;
        }
      }
    }
  }

private:
  const Differentiated &model;
  const double decay;
  Values means;
};

/// Runs some steps of an entry and compares them with the equations; returns the final weights.
Values train(CompiledModel &compiled, const std::string &name, unsigned workers) {
  SCOPED_TRACE(name + " " + std::to_string(workers));
  Differentiated model(trace<specs::TrainedModel>(), 11);
  llvm::Error unbound = compiled.bind(model.weights);
  EXPECT_FALSE(unbound) << llvm::toString(std::move(unbound));
  const std::size_t number = entryNumber(model.graph, name), logits = entryNumber(model.graph, "logits");
  const Entry &entry = model.graph.entries[number];
  CompiledModel::Session session(
      compiled, {.order = workers > 1 ? fuzz::TaskOrder::Threads : fuzz::TaskOrder::Serial, .workers = workers});
  Optimizer optimizer(entry.training);
  Values last;
  Averages averages(model, entry.training);
  for (int t = 1; t <= 5; ++t) {
    const MicroBatches batches(model, entry);
    const double rate = 0.03 / t;
    const double norm = optimizer.step(model.weights, batches.gradients, rate, t);
    CompiledModel::Buffers bytes = batches.bytes;
    for (const Tensor &input : {Tensor::of(ElementType::f32, {}, {rate}), integers({}, {double(t)})})
      bytes.push_back(fuzz::toBytes(input));
    llvm::Expected<CompiledModel::Buffers> results = session.call(number, extents, bytes);
    EXPECT_TRUE(static_cast<bool>(results)) << llvm::toString(results.takeError());
    EXPECT_NEAR(floatOf(results->front()), batches.loss, 1e-5);
    EXPECT_EQ(results->size(), entry.output_names.size() + (entry.training.clip > 0));
    for (std::size_t i = 0; i < batches.logits.size(); ++i) {
      float value;
      std::memcpy(&value, results->at(1).data() + i * sizeof value, sizeof value);
      EXPECT_NEAR(value, batches.logits[i], 1e-4);
    }
    averages.step(model.weights, t);
    averages.expect(compiled, session);
    if (entry.training.clip > 0) {
      EXPECT_NEAR(floatOf(results->back()), norm, 1e-5 * norm);
      EXPECT_GT(norm, entry.training.clip) << "nothing is clipped";
    }
    for (const auto &[weight, expected] : model.weights) {
      llvm::Expected<Tensor> got = compiled.read(weight, expected.shape);
      EXPECT_TRUE(static_cast<bool>(got)) << llvm::toString(got.takeError());
      for (std::size_t i = 0; i < got->values.size(); ++i)
        EXPECT_NEAR(got->values[i], expected.values[i], 2e-5) << weight << " " << i << " after step " << t;
      last[weight] = got->values;
    }
    // Other entries use the new weights immediately.
    const std::vector<Tensor> inputs = drawTokens(model);
    llvm::Expected<CompiledModel::Buffers> seen = session.call(logits, extents, {fuzz::toBytes(inputs[0])});
    EXPECT_TRUE(static_cast<bool>(seen)) << llvm::toString(seen.takeError());
    interpreter::Interpreter run(model.graph, [&](const std::string &each) { return model.weights.at(each); });
    const Tensor expected = run.run(logits, extents, {inputs[0]})[0];
    for (std::size_t i = 0; i < expected.values.size(); ++i) {
      float value;
      std::memcpy(&value, seen->front().data() + i * sizeof value, sizeof value);
      EXPECT_NEAR(value, expected.values[i], 1e-4);
    }
  }
  return last;
}

TEST(Train, FollowsTheEquations) {
  for (const std::string &target : {runnableTargets().front(), runnableTargets().back()}) {
    SCOPED_TRACE(target);
    const Graph graph = trace<specs::TrainedModel>();
    llvm::Expected<CompiledModel> compiled = CompiledModel::compile(graph, target);
    ASSERT_TRUE(static_cast<bool>(compiled)) << llvm::toString(compiled.takeError());
    for (const Entry &entry : graph.entries)
      if (entry.training.changes_parameters())
        EXPECT_EQ(train(*compiled, entry.name, 1), train(*compiled, entry.name, 3))
            << "other bits for other numbers of workers";
  }
}

/// Compares the equations with torch.optim (tests/models/oracle/gradients.py).
TEST(Train, EquationsArePyTorchs) {
  const Golden golden("gradients.safetensors");
  auto uniform = [](const std::string &name) {
    std::vector<double> values;
    for (std::uint64_t i = 0; i < 6; ++i)
      values.push_back(counter_uniform(name, i));
    return values;
  };
  const std::pair<const char *, kiln::Training> optimizers[] = {
      {"sgd", Sgd{.momentum = 0.9, .weight_decay = 0.05}.training()},
      {"adam", Adam{.beta2 = 0.99, .weight_decay = 0.02}.training()},
      {"adamw", AdamW{.beta1 = 0.8, .weight_decay = 0.1}.training()}};
  for (auto [name, training] : optimizers)
    for (double clip : {0.0, 0.5}) {
      training.clip = clip;
      Optimizer optimizer(training);
      std::map<std::string, Tensor> weights{{"w", Tensor::of(ElementType::f32, {6}, uniform("w"))}};
      for (int t = 1; t <= 10; ++t)
        optimizer.step(weights, {{"w", uniform("g" + std::to_string(t))}}, 0.03 / t, t);
      const std::vector<float> expected = golden.floats(name + std::string(clip > 0 ? "_clipped" : "") + "|w");
      for (std::size_t i = 0; i < 6; ++i)
        EXPECT_NEAR(weights.at("w").values[i], expected[i], 1e-6) << name << " " << clip << " " << i;
    }
}

TEST(Train, LossThatIsNotFiniteChangesNothing) {
  Differentiated model(trace<specs::TrainedModel>(), 3);
  model.weights.at("h.1.out.bias").values[2] = std::numeric_limits<double>::infinity();
  llvm::Expected<CompiledModel> compiled = CompiledModel::compile(model.graph, runnableTargets().front());
  ASSERT_TRUE(static_cast<bool>(compiled)) << llvm::toString(compiled.takeError());
  llvm::Error unbound = compiled->bind(model.weights);
  ASSERT_FALSE(unbound) << llvm::toString(std::move(unbound));
  model.weights.at("norm.weight").values[1] = std::numeric_limits<double>::quiet_NaN();
  unbound = compiled->bind(model.weights);
  ASSERT_FALSE(unbound) << llvm::toString(std::move(unbound));
  CompiledModel::Session session(*compiled, {});
  CompiledModel::Buffers bytes;
  std::vector<Tensor> inputs = drawTokens(model);
  inputs.push_back(Tensor::of(ElementType::f32, {}, {0.1}));
  inputs.push_back(integers({}, {1}));
  for (const Tensor &input : inputs)
    bytes.push_back(fuzz::toBytes(input));
  for (const char *name : {"descend", "adamw", "clipped"}) {
    const std::vector<char> before = session.states();
    auto isAsBefore = [&] { // except for the mark of an arena in which a call has begun
      return std::equal(before.begin() + KILN_MARK_BYTES, before.end(), session.states().begin() + KILN_MARK_BYTES);
    };
    llvm::Expected<CompiledModel::Buffers> results = session.call(entryNumber(model.graph, name), extents, bytes);
    ASSERT_FALSE(static_cast<bool>(results));
    EXPECT_EQ(llvm::toString(results.takeError()), std::string(name) +
                                                       " of model \"fuzzed\": no weight changed; expected a finite " +
                                                       "loss, learning rate and gradients, and a step from 1 on");
    EXPECT_TRUE(isAsBefore());
    for (const auto &[weight, expected] : model.weights) {
      llvm::Expected<Tensor> got = compiled->read(weight, expected.shape);
      ASSERT_TRUE(static_cast<bool>(got)) << llvm::toString(got.takeError());
      for (std::size_t i = 0; i < got->values.size(); ++i)
        EXPECT_TRUE(got->values[i] == expected.values[i] || std::isnan(expected.values[i])) << weight << " " << i;
    }
  }
}

} // namespace
} // namespace kiln::testing
