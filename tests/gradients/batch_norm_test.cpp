// SPDX-License-Identifier: Apache-2.0
//
// Batch normalisation in training entries compared with loops in f64: gradients, running averages, and frozen norms.
#include "compiled.h"
#include "normalized.h"
#include "optimizer.h"
#include "tests/targets/RunnableTargets.h"

namespace kiln::testing {
namespace {

using fuzz::CompiledModel;
constexpr int places = 3, width = 4;

std::vector<Tensor> imagesOf(Differentiated &model, const Entry &entry, std::int64_t rows) {
  std::vector<std::int64_t> shape{rows, places, width};
  if (entry.training.micro_batches > 0)
    shape.insert(shape.begin(), entry.training.micro_batches);
  return {draw(shape, model.random)};
}

/// Normalized::loss in plain loops. `isTraining`: whether the norm of that name uses the statistics of the rows.
class NormalizedLoops {
public:
  NormalizedLoops(const Differentiated &model, std::vector<double> x,
                  std::function<bool(const std::string &)> isTraining)
      : model(model), x(std::move(x)), isTraining(std::move(isTraining)) {}

  double loss() {
    std::vector<double> y = x;
    for (std::size_t i = 0; i < y.size(); ++i)
      y[i] *= weight("scale", i % width);
    for (const char *name : {"h.0.norm", "h.1.norm"}) {
      const std::vector<double> normed = normalize(name, y, 0x1p-7);
      for (std::size_t i = 0; i < y.size(); ++i)
        y[i] += std::tanh(normed[i]);
    }
    const std::vector<double> normed = normalize("last", y, 1e-5);
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i)
      sum += std::tanh(normed[i]) * weight("of_places", i % (places * width));
    return sum;
  }

  /// The statistics that running averages approach, by the names of the averages.
  std::map<std::string, std::vector<double>> targets;

private:
  double weight(const std::string &name, std::size_t at) const { return model.weights.at(name).values.at(at); }

  std::vector<double> normalize(const std::string &name, std::vector<double> y, double epsilon) {
    const std::size_t rows = y.size() / width;
    for (std::size_t c = 0; c < width; ++c) {
      double mean = 0, variance = 0;
      for (std::size_t r = 0; r < rows; ++r)
        mean += y[r * width + c] / static_cast<double>(rows);
      for (std::size_t r = 0; r < rows; ++r)
        variance += (y[r * width + c] - mean) * (y[r * width + c] - mean) / static_cast<double>(rows);
      targets[name + ".running_mean"].resize(width);
      targets[name + ".running_var"].resize(width);
      targets[name + ".running_mean"][c] = mean;
      targets[name + ".running_var"][c] = variance * static_cast<double>(rows) / (static_cast<double>(rows) - 1);
      if (!isTraining(name)) {
        mean = weight(name + ".running_mean", c);
        variance = weight(name + ".running_var", c);
      }
      for (std::size_t r = 0; r < rows; ++r)
        y[r * width + c] = (y[r * width + c] - mean) / std::sqrt(variance + epsilon) * weight(name + ".weight", c) +
                           weight(name + ".bias", c);
    }
    return y;
  }

  const Differentiated &model;
  const std::vector<double> x;
  const std::function<bool(const std::string &)> isTraining;
};

bool always(const std::string &) { return true; }

/// Returns, by the names of weights: finite differences of the loss; for a running average, its distance from its
/// target.
std::map<std::string, std::vector<double>> gradientsOf(Differentiated &model, NormalizedLoops &reference) {
  std::map<std::string, std::vector<double>> gradients;
  for (auto &[name, weight] : model.weights)
    if (name.find("running_") == std::string::npos)
      for (double &value : weight.values) {
        const double own = value, h = 1e-6;
        value = own + h;
        const double above = reference.loss();
        value = own - h;
        const double below = reference.loss();
        value = own;
        gradients[name].push_back((above - below) / (2 * h));
      }
  (void)reference.loss();
  for (const auto &[name, target] : reference.targets)
    for (std::size_t i = 0; i < target.size(); ++i)
      gradients[name].push_back(model.weights.at(name).values[i] - target[i]);
  return gradients;
}

TEST(BatchNorm, DifferentiatesAndFollows) {
  Differentiated model(trace<specs::Normalized>(), 4);
  ASSERT_TRUE(model.module);
  for (const char *name : {"all", "recomputed", "frozen"})
    for (std::int64_t rows : {1, 2, 7}) {
      SCOPED_TRACE(name);
      const Entry &entry = entryOf(model.graph, name);
      const std::vector<Tensor> inputs = imagesOf(model, entry, rows);
      const std::vector<verify::SharedTensor> results = model.run(entry, {{"rows", rows}}, inputs);
      const bool isFrozen = entry.name == std::string("frozen");
      NormalizedLoops reference(model, inputs[0].values, [&](const std::string &) { return !isFrozen; });
      EXPECT_NEAR(results[0]->values[0], reference.loss(), 1e-9);
      const auto expected = gradientsOf(model, reference);
      EXPECT_EQ(results.size(), isFrozen ? 5u : 11u) << "the loss, and a gradient for each parameter";
      for (unsigned result = 1; result < results.size(); ++result)
        for (const Parameter &parameter : model.graph.parameters) {
          if (gradient_name(model.graph.name(parameter)) != model.resultName(entry, result))
            continue;
          std::size_t at = 0;
          for (std::int64_t copy = 0; copy < model.graph.copies(parameter.scope); ++copy)
            for (double each : expected.at(model.nameOf(parameter, copy)))
              EXPECT_NEAR(results[result]->values.at(at++), each, 1e-6 * std::max(1.0, std::abs(each)))
                  << model.resultName(entry, result) << " " << at;
        }
    }
}

TEST(BatchNorm, TakesTheRunningAveragesElsewhere) {
  Differentiated model(trace<specs::Normalized>(), 4);
  const Entry &entry = entryOf(model.graph, "kept");
  const std::vector<Tensor> inputs = imagesOf(model, entry, 3);
  NormalizedLoops reference(model, inputs[0].values, [](const std::string &) { return false; });
  EXPECT_NEAR(model.run(entry, {{"rows", 3}}, inputs)[0]->values[0], reference.loss(), 1e-9);
}

TEST(BatchNorm, Compiled) {
  for (const std::string &target : runnableTargets())
    expectCompiled(trace<specs::Normalized>(), target, imagesOf);
}

/// Training steps: clipping and the optimiser ignore running averages.
TEST(BatchNorm, Steps) {
  Differentiated model(trace<specs::Normalized>(), 8);
  llvm::Expected<CompiledModel> compiled = CompiledModel::compile(model.graph, runnableTargets().front());
  ASSERT_TRUE(static_cast<bool>(compiled)) << llvm::toString(compiled.takeError());
  EXPECT_FALSE(compiled->interface().findState("mean:last.running_mean"));
  EXPECT_TRUE(compiled->interface().findState("mean:last.weight"));
  EXPECT_TRUE(compiled->interface().findState("average:last.running_mean"));
  llvm::Error unbound = compiled->bind(model.weights);
  ASSERT_FALSE(unbound) << llvm::toString(std::move(unbound));
  const Entry &entry = entryOf(model.graph, "train");
  Optimizer optimizer(entry.training);
  CompiledModel::Session session(*compiled, {.workers = 2});
  for (int t = 1; t <= 4; ++t) {
    std::vector<Tensor> inputs = imagesOf(model, entry, 5);
    NormalizedLoops reference(model, inputs[0].values, always);
    auto gradients = gradientsOf(model, reference);
    for (const auto &[name, target] : reference.targets) {
      const double rate = name.starts_with("h.") ? 0.25 : 0.1;
      for (std::size_t i = 0; i < target.size(); ++i)
        model.weights.at(name).values[i] -= rate * gradients.at(name)[i];
      gradients.erase(name);
    }
    const double norm = optimizer.step(model.weights, gradients, 0.01, t);
    EXPECT_GT(norm, entry.training.clip);
    inputs.push_back(Tensor::of(ElementType::f32, {}, {0.01}));
    inputs.push_back(integers({}, {double(t)}));
    CompiledModel::Buffers bytes;
    for (const Tensor &input : inputs)
      bytes.push_back(fuzz::toBytes(input));
    llvm::Expected<CompiledModel::Buffers> results =
        session.call(static_cast<std::size_t>(&entry - model.graph.entries.data()), {{"rows", 5}}, bytes);
    ASSERT_TRUE(static_cast<bool>(results)) << llvm::toString(results.takeError());
    float got;
    std::memcpy(&got, results->back().data(), sizeof got);
    EXPECT_NEAR(got, norm, 1e-4 * norm);
    for (const auto &[name, expected] : model.weights) {
      llvm::Expected<Tensor> weight = compiled->read(name, expected.shape);
      ASSERT_TRUE(static_cast<bool>(weight)) << llvm::toString(weight.takeError());
      for (std::size_t i = 0; i < expected.values.size(); ++i)
        EXPECT_NEAR(weight->values[i], expected.values[i], 1e-4) << name << " " << i << " after step " << t;
    }
  }
}

} // namespace
} // namespace kiln::testing
