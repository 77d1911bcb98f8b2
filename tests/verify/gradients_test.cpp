// SPDX-License-Identifier: Apache-2.0
//
// Reverse mode on every small model: gradients of a function of its outputs, compared with finite differences.
#include "gradients.h"
#include "models.h"

#include "compiler/pipeline/ImportModel.h"
#include "compiler/pipeline/Pipeline.h"
#include "compiler/verify/CentralDifference.h"
#include "compiler/verify/RandomCalls.h"
#include "support.h"

#include "mlir/Pass/PassManager.h"
#include <gtest/gtest.h>
#include <random>

namespace kiln::testing {
namespace {

using verify::SharedTensor;
class DifferentiatedModels : public ::testing::TestWithParam<TracedModel> {
protected:
  void SetUp() override {
    graph = GetParam().trace();
    module = importModel(graph, &context, "model");
    ASSERT_TRUE(module);
    mlir::PassManager passes(&context);
    kd::buildRecognition(passes);
    ASSERT_TRUE(succeeded(passes.run(*module)));
    weights = std::make_unique<verify::RandomWeights>(*module, 3);
  }

  bool hasHalfFloats() const {
    return llvm::any_of(graph.nodes,
                        [](const Node &node) { return floating(node.element) && node.element != ElementType::f32; });
  }
  double loss(mlir::func::FuncOp function, const verify::EntryCall &call) { return run(function, call)[0]->values[0]; }
  std::vector<SharedTensor> run(mlir::func::FuncOp function, const verify::EntryCall &call) {
    verify::ModuleInterpreter interpreter([&](const std::string &pattern, const std::string &name) {
      auto known = changed.find(name);
      return known != changed.end() ? known->second : weights->get(pattern, name);
    });
    return interpreter.run(function, call.extents, call.inputs);
  }
  void expectDerivative(mlir::func::FuncOp function, const verify::EntryCall &call, const std::string &pattern,
                        const std::string &name, std::size_t element, double got, double scale) {
    const SharedTensor own = weights->get(pattern, name);
    const std::optional<double> expected = verify::centralDifference(
        [&](double distance) {
          verify::Tensor moved = *own;
          moved.values[element] += distance;
          changed[name] = std::make_shared<const verify::Tensor>(std::move(moved));
          return loss(function, call);
        },
        scale);
    changed.clear();
    if (!expected)
      ++kinks;
    else
      EXPECT_NEAR(got, *expected, verify::derivativeTolerance(scale, *expected)) << name << " " << element;
    ++compared;
  }

  Context context;
  Graph graph;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<verify::RandomWeights> weights;
  std::map<std::string, SharedTensor> changed;
  int compared = 0, kinks = 0;
};

TEST_P(DifferentiatedModels, HaveTheirDerivatives) {
  if (hasHalfFloats())
    GTEST_SKIP() << "numbers that are rounded to 16 bits go in steps";
  constexpr double mostOperations = 2e8;
  const verify::RandomCalls calls = verify::drawCalls(*module, 5, 1e5);
  for (auto function : module->getOps<mlir::func::FuncOp>()) {
    SCOPED_TRACE(function.getName().str());
    const bool isStateful = function
                                ->walk([](mlir::Operation *op) {
                                  return llvm::isa<kd::StateOp, kd::AppendOp, kd::StoreOp>(op)
                                             ? mlir::WalkResult::interrupt()
                                             : mlir::WalkResult::advance();
                                })
                                .wasInterrupted();
    const auto parameters = parametersOf(function);
    if (isStateful || llvm::none_of(function.getBody().front().getTerminator()->getOperands(), isFloat))
      continue;
    ASSERT_TRUE(addGradients(function, parameters));
    const unsigned outputs = function.getNumResults() - static_cast<unsigned>(parameters.size());
    for (const verify::EntryCall &call : calls.sessions.front()) {
      if (call.entry != function.getName())
        continue;
      const std::vector<SharedTensor> results = run(function, call);
      if (std::isnan(results[0]->values[0])) // attention to no keys, due to a random length
        continue;
      std::mt19937 random(1);
      // Each element takes four runs of the model.
      const auto every = static_cast<std::size_t>(1 + 12 * parameters.size() * calls.operations / mostOperations);
      std::size_t drawn = 0;
      for (auto [number, parameter] : llvm::enumerate(parameters)) {
        const verify::Tensor &gradient = *results[outputs + number];
        double scale = 0; // the largest of all its elements
        for (double value : gradient.values)
          scale = std::max(scale, std::abs(value));
        const std::size_t each = gradient.values.size() / parameter.second;
        for (int i = 0; i < 3; ++i) {
          const std::size_t at = random() % gradient.values.size();
          const std::string pattern = parameter.first.str();
          if (drawn++ % every != 0)
            continue;
          expectDerivative(function, call, pattern, nameOf(pattern, at / each, graph), at % each, gradient.values[at],
                           std::max(scale, 1e-3));
        }
      }
      break;
    }
  }
  EXPECT_GE(compared, 4 * kinks);
}

INSTANTIATE_TEST_SUITE_P(, DifferentiatedModels, ::testing::ValuesIn(modelsByName()),
                         [](const auto &info) { return info.param.name; });

} // namespace
} // namespace kiln::testing
