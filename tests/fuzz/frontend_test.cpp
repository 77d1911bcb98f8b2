// SPDX-License-Identifier: Apache-2.0
//
// What check() accepts the compiler's frontend and verifiers accept: two readings of dsl/SPEC.md.
#include "compiler/frontend/Import.h"

#include <gtest/gtest.h>

#include "mlir/IR/MLIRContext.h"
#include "tests/fuzz/PrintSpec.h"
#include "tests/fuzz/RandomGraph.h"
#include "tests/fuzz/Shapes.h"

namespace kiln::fuzz {
namespace {

/// The first diagnostic of the import; empty if there is a module.
std::string importError(const Graph &graph, mlir::MLIRContext &context) {
  std::string first;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    if (first.empty())
      first = diagnostic.str();
    return mlir::success();
  });
  mlir::OwningOpRef<mlir::ModuleOp> module = importGraph(graph, &context, "fuzzed");
  if (!module && first.empty())
    return "refused without a word";
  return first;
}

/// --gtest_random_seed=N tries other ones.
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

} // namespace
} // namespace kiln::fuzz
