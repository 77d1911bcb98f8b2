// SPDX-License-Identifier: Apache-2.0
//
// Gradients of norms whose elements are equal: what is normalised is 0, however large the elements are.
#include "compiled.h"
#include "constant_norms.h"

namespace kiln::testing {
namespace {

TEST(ConstantNorms, HaveNoGradientOfTheirWeights) {
  fuzz::CompiledModel &compiled = libraryOf<specs::ConstantNorms>();
  Differentiated model(trace<specs::ConstantNorms>(), 6);
  llvm::Error unbound = compiled.bind(model.weights);
  ASSERT_FALSE(unbound) << llvm::toString(std::move(unbound));
  const Entry &entry = entryOf(model.graph, "all");
  const std::vector<double> &places = model.weights.at("of_places").values;
  constexpr std::size_t width = 6;
  for (std::int64_t rows : {1, 2, 9})
    for (float number : {10000.1f, -300.1f, 1000000.3f}) {
      SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(number));
      Tensor x = Tensor::zeros(ElementType::f32, {rows, 3, width});
      std::fill(x.values.begin(), x.values.end(), number);
      fuzz::CompiledModel::Session session(compiled, {.workers = 1});
      llvm::Expected<fuzz::CompiledModel::Buffers> results = session.call(0, {{"rows", rows}}, {fuzz::toBytes(x)});
      ASSERT_TRUE(static_cast<bool>(results)) << llvm::toString(results.takeError());
      auto valuesOf = [&](std::size_t result) {
        std::vector<float> values((*results)[result].size() / sizeof(float));
        std::memcpy(values.data(), (*results)[result].data(), (*results)[result].size());
        return values;
      };
      double loss = 0;
      std::vector<double> biases(width), ofBiases(width);
      for (const char *name : {"layer.bias", "batch.bias", "group.bias", "instance.bias"})
        for (std::size_t c = 0; c < width; ++c)
          biases[c] += model.weights.at(name).values[c];
      for (std::size_t i = 0; i < places.size(); ++i) {
        ofBiases[i % width] += static_cast<double>(rows) * places[i];
        loss += static_cast<double>(rows) * places[i] * biases[i % width];
      }
      EXPECT_NEAR(valuesOf(0)[0], loss, 1e-4);
      int weights = 0, shifts = 0;
      for (unsigned result = 1; result < results->size(); ++result)
        for (const Parameter &parameter : model.graph.parameters) {
          const std::string leaf = parameter.leaf;
          if (gradient_name(model.graph.name(parameter)) != model.resultName(entry, result))
            continue;
          SCOPED_TRACE(model.resultName(entry, result));
          const std::vector<float> got = valuesOf(result);
          for (std::size_t c = 0; c < width && leaf == "weight"; ++c)
            EXPECT_EQ(got[c], 0);
          for (std::size_t c = 0; c < width && leaf == "bias"; ++c)
            EXPECT_NEAR(got[c], ofBiases[c], 1e-5);
          weights += leaf == "weight";
          shifts += leaf == "bias";
        }
      EXPECT_EQ(weights, 4);
      EXPECT_EQ(shifts, 4);
    }
}

} // namespace
} // namespace kiln::testing
