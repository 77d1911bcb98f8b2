// SPDX-License-Identifier: Apache-2.0
//
// Compares two implementations of dsl/SPEC.md: the compiler's front end and verifiers must accept what check() accepts,
// and both must agree on the weights that can be quantised.
#include "compiler/dialect/ElementTypes.h"
#include "compiler/dialect/KilnDialect.h"
#include "compiler/pipeline/ImportModel.h"

#include <gtest/gtest.h>

#include "mlir/IR/MLIRContext.h"
#include "tests/fuzz/PrintSpec.h"
#include "tests/fuzz/RandomGraph.h"
#include "tests/fuzz/Shapes.h"
#include "tests/fuzz/StoredWeights.h"

namespace kiln::fuzz {
namespace {

/// Returns the first diagnostic of the import, or an empty string if it succeeds.
std::string importError(const Graph &graph, mlir::MLIRContext &context) {
  std::string first;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    if (first.empty())
      first = diagnostic.str();
    return mlir::success();
  });
  mlir::OwningOpRef<mlir::ModuleOp> module = importModel(graph, &context, "fuzzed");
  if (!module && first.empty())
    return "refused without a word";
  return first;
}

/// Use --gtest_random_seed=N to test other graphs.
TEST(RandomGraphs, AreAcceptedByTheFrontend) {
  mlir::MLIRContext context;
  int shown = 0;
  const std::uint64_t count = 5000, first = count * static_cast<std::uint64_t>(GTEST_FLAG_GET(random_seed));
  for (std::uint64_t seed = first; seed < first + count && shown < 5; ++seed) {
    const RandomModel model = randomModel(seed);
    ASSERT_EQ(check(model.graph), "") << "seed " << seed;
    const std::string error = importError(model.graph, context);
    EXPECT_EQ(error, "") << "seed " << seed << "\n" << printSpec(model.graph);
    shown += !error.empty();
  }
}

/// Returns the type of a weight's stored numbers in the module by its name, or an empty string.
std::string storageOf(mlir::ModuleOp module, const std::string &name) {
  std::string text;
  module.walk([&](mlir::kiln::ParameterOp parameter) {
    if (mlir::cast<mlir::StringAttr>(parameter.getSources()[0]).getValue() == name && parameter.getStorageAttr())
      text = name_of(*mlir::kiln::toElementType(parameter.getStorageAttr().getElement()));
  });
  return text;
}

// storableWeights analyses the graph, the compiler analyses the module.
TEST(RandomGraphs, StoreTheWeightsThatAreDrawn) {
  mlir::MLIRContext context;
  int stored = 0, inGroups = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const RandomModel model = randomModel(seed); // owns the names
    const Graph &graph = model.graph;
    const std::string choice = drawWeights(graph, seed);
    if (choice.empty())
      continue;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + choice);
    std::string error;
    const std::optional<StorageChoices> choices = parseStorageChoices(choice, error);
    ASSERT_TRUE(choices) << error;
    mlir::OwningOpRef<mlir::ModuleOp> module = importModel(graph, &context, "fuzzed", *choices);
    ASSERT_TRUE(module);
    const std::string byDefault = name_of(choices->defaultFormat.element);
    for (const std::string &name : storableWeights(graph)) {
      const bool isException = !choices->exceptions.empty() && choices->exceptions[0].pattern == name;
      const std::string got = storageOf(*module, name);
      const bool hasGroups = choices->defaultFormat.group > 0;
      inGroups += hasGroups && !isException && !got.empty();
      if (!hasGroups || !got.empty()) // a weight whose size is not a multiple of the group size is not quantised
        EXPECT_EQ(got, isException ? "f16" : byDefault) << name;
      ++stored;
    }
  }
  EXPECT_GE(stored, 200);
  EXPECT_GE(inGroups, 1);
}

// A storage format that the spec states overrides the build option.
TEST(RandomGraphs, StoreTheWeightsThatTheyState) {
  mlir::MLIRContext context;
  int stated = 0, others = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomModel model = randomModel(seed);
    Graph &graph = model.graph;
    const std::vector<std::string> storable = storableWeights(graph);
    drawStorages(graph, seed);
    mlir::OwningOpRef<mlir::ModuleOp> module = importModel(graph, &context, "fuzzed", {int8, {}});
    ASSERT_TRUE(module);
    for (const Parameter &parameter : graph.parameters) {
      const std::string name = graph.name(parameter), got = storageOf(*module, name);
      if (!parameter.storage.is_stated) {
        others += llvm::is_contained(storable, name);
        EXPECT_TRUE(got == "i8" || !llvm::is_contained(storable, name)) << name << ": " << got;
        continue;
      }
      ++stated;
      EXPECT_EQ(got, parameter.storage.has_fewer_bits() ? name_of(parameter.storage.element) : "") << name;
    }
  }
  EXPECT_GE(stated, 200);
  EXPECT_GE(others, 200);
}

} // namespace
} // namespace kiln::fuzz
