// SPDX-License-Identifier: Apache-2.0
//
// Gradients of whole models compared with those of PyTorch's autograd, both in f64 (tests/models/oracle/gradients.py).
#include "gradients.h"
#include "models.h"

#include "captions/captions.h"
#include "compiler/pipeline/ImportModel.h"
#include "compiler/pipeline/Pipeline.h"
#include "compiler/verify/ModuleInterpreter.h"
#include "support.h"
#include "tests/models/counter.h"
#include "tests/models/golden.h"

#include "mlir/Pass/PassManager.h"
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

struct TorchCase {
  const char *golden, *model, *entry;
  std::map<std::string, std::int64_t> extents;
  std::vector<std::string> inputs; // the generator's names
  std::int32_t vocabulary = 0, firstToken = 0;
  unsigned outputs = ~0u; // number of outputs in the loss
};

void PrintTo(const TorchCase &torchCase, std::ostream *out) { *out << torchCase.golden; }

const TorchCase cases[] = {
    {"gpt2", "small_gpt2", "forward", {{"tokens", 11}}, {"tokens"}, 97},
    {"bert", "small_bert", "forward", {{"batch", 1}, {"tokens", 9}}, {"tokens", "segments", "lengths"}, 30522},
    {"vit", "small_vit", "forward", {}, {"image"}},
    {"transformer",
     "small_transformer",
     "forward",
     {{"source_tokens", 7}, {"target_tokens", 5}},
     {"source", "target"},
     97},
    {"swin", "swin_two_stages", "forward", {{"batch", 1}}, {"images"}},
    {"small_cnn", "small_cnn", "forward", {{"batch", 1}}, {"image"}},
    {"captions", "captions_recurrent", "forward", {{"words", 7}}, {"image", "sentence"}, 26, 0, 1},
    {"detr", "detr", "forward", {{"batch", 1}}, {"images"}, 0, 0, 2},
    {"mvit", "mvit", "forward", {{"batch", 1}}, {"images"}},
    {"lstm", "recurrent", "lstm", {{"steps", 7}, {"batch", 3}}, {"x"}},
    {"gru", "recurrent", "gru", {{"steps", 7}, {"batch", 3}}, {"x"}},
    {"names_fixed",
     "names_fixed",
     "forward",
     {{"source_tokens", 7}, {"target_tokens", 5}},
     {"source", "target"},
     383,
     1},
};

verify::SharedTensor generatedWeight(const std::string &name, const std::vector<std::int64_t> &shape) {
  const CounterWeight weight(name, shape);
  verify::Tensor tensor = verify::Tensor::zeros(ElementType::f32, shape);
  for (std::size_t i = 0; i < tensor.values.size(); ++i)
    tensor.values[i] = weight(i);
  return std::make_shared<const verify::Tensor>(std::move(tensor));
}

/// Returns the graph of a model of these tests, or of one that is too large for the other tests.
Graph graphNamed(const std::string &name) {
  for (const TracedModel &model : models())
    if (model.name == name)
      return model.trace();
  return trace<captions::TrainedRecurrent>();
}

class TorchGradients : public ::testing::TestWithParam<TorchCase> {
protected:
  void SetUp() override {
    graph = graphNamed(GetParam().model);
    module = importModel(graph, &context, "model");
    ASSERT_TRUE(module);
    mlir::PassManager passes(&context);
    kd::buildRecognition(passes);
    ASSERT_TRUE(succeeded(passes.run(*module)));
  }

  std::int64_t extentOf(const Dim &dim) const {
    return dim.offset + (dim.fixed() ? 0 : dim.factor * GetParam().extents.at(dim.symbols[0].name));
  }
  std::vector<verify::SharedTensor> inputs(const Entry &entry) const {
    std::vector<verify::SharedTensor> all;
    for (auto [number, node] : llvm::enumerate(graph.regions[entry.region].arguments)) {
      const std::string &name = GetParam().inputs.at(number);
      std::vector<std::int64_t> shape;
      for (const Dim &dim : graph.nodes[node].shape)
        shape.push_back(extentOf(dim));
      verify::Tensor tensor = verify::Tensor::zeros(graph.nodes[node].element, shape);
      for (std::size_t i = 0; i < tensor.values.size(); ++i)
        tensor.values[i] =
            name == "lengths" ? static_cast<double>(GetParam().extents.at("tokens"))
            : floating(tensor.element)
                ? counter_uniform(name, i)
                : GetParam().firstToken + counter_token(name, i, name == "segments" ? 2 : GetParam().vocabulary);
      all.push_back(std::make_shared<const verify::Tensor>(std::move(tensor)));
    }
    return all;
  }

  Context context;
  Graph graph;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

TEST_P(TorchGradients, AreTheSame) {
  const Golden golden("gradients.safetensors");
  const std::string prefix = std::string(GetParam().golden) + "|";
  auto function = module->lookupSymbol<mlir::func::FuncOp>(GetParam().entry);
  auto parameters = parametersOf(function);
  parameters.remove_if([](const auto &each) { return each.first.contains("running_"); }); // no parameters in PyTorch
  ASSERT_TRUE(addGradients(function, parameters, GetParam().outputs));
  std::map<std::string, std::vector<std::int64_t>> shapes;
  for (const Parameter &parameter : graph.parameters)
    shapes[graph.name(parameter)].assign(parameter.shape.begin(), parameter.shape.end());
  std::vector<std::int64_t> extents;
  for (auto symbol : kd::getSymbols(*module))
    extents.push_back(GetParam().extents.at(symbol.getName().str()));
  const auto entry =
      llvm::find_if(graph.entries, [](const Entry &each) { return GetParam().entry == std::string(each.name); });
  verify::ModuleInterpreter interpreter(
      [&](const std::string &pattern, const std::string &name) { return generatedWeight(name, shapes.at(pattern)); });
  const std::vector<verify::SharedTensor> results = interpreter.run(function, extents, inputs(*entry));

  const double loss = golden.floats(prefix + "loss")[0];
  EXPECT_NEAR(results[0]->values[0], loss, 1e-6 * loss);
  const std::size_t first = results.size() - parameters.size();
  std::size_t compared = 0;
  for (auto [number, parameter] : llvm::enumerate(parameters)) {
    const verify::Tensor &gradient = *results[first + number];
    const std::size_t each = gradient.values.size() / static_cast<std::size_t>(parameter.second);
    for (std::int64_t copy = 0; copy < parameter.second; ++copy) {
      const std::string name = nameOf(parameter.first.str(), copy, graph);
      const std::vector<float> expected = golden.floats(prefix + name + ".value");
      // Relative to all gradients of the copy or, where these are only rounding errors (biases of keys), of the model.
      const double most = std::max<double>(golden.floats(prefix + name + ".max")[0], 1e-9 * loss);
      for (std::size_t i = 0; i < expected.size(); ++i, ++compared) {
        const auto at = static_cast<std::size_t>(counter_token("gradient." + name, i, static_cast<std::int32_t>(each)));
        EXPECT_NEAR(gradient.values[static_cast<std::size_t>(copy) * each + at], expected[i], 1e-6 * most)
            << name << " " << at;
      }
    }
  }
  EXPECT_GT(compared, 60u);
}

INSTANTIATE_TEST_SUITE_P(, TorchGradients, ::testing::ValuesIn(cases),
                         [](const auto &info) { return std::string(info.param.golden); });

} // namespace
} // namespace kiln::testing
