// SPDX-License-Identifier: Apache-2.0
//
// Kernels of random models, compared before lowering with the interpreter's f64 with error bounds, with the smallest
// and the largest dimensions; and with arbitrary integers, where no access may leave its tensor. The same with f16 and
// bf16.
//
// The run's seed is the seed of the first model; KILN_CUDA_GRAPHS sets the number of models.
#include "../seed.h"
#include "DeviceKernel.h"
#include "Prepare.h"
#include "compiler/dialect/AffineEval.h"
#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
#include "compiler/interpreter/Compare.h"
#include "compiler/pipeline/ImportModel.h"
#include "compiler/pipeline/Pipeline.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/Passes.h"
#include "tests/fuzz/RandomGraph.h"
#include <cstdlib>
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

/// The PTX interpreter executes some 10^7 warp instructions per second.
constexpr int64_t mostElements = 20000;

/// Returns the texts of a model's kernels, in kiln ops.
std::vector<std::string> kernelsOf(const Graph &graph) {
  mlir::DialectRegistry registry;
  mlir::kiln::registerPipelineDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  mlir::OwningOpRef<mlir::ModuleOp> module = importModel(graph, &context, "random");
  mlir::PassManager passes(&context);
  passes.addPass(mlir::createCanonicalizerPass());
  passes.addPass(mlir::createCSEPass());
  passes.addNestedPass<mlir::func::FuncOp>(mlir::kiln::createRecognizeAttention());
  passes.addPass(mlir::kiln::createMergeProjections());
  passes.addPass(mlir::createCanonicalizerPass());
  passes.addPass(mlir::kiln::createFormKernels(mlir::kiln::GroupingRules{nullptr, true, true}));
  passes.addPass(mlir::createCanonicalizerPass());
  std::vector<std::string> texts;
  if (!module || failed(passes.run(*module)))
    return texts;
  for (auto function : module->getOps<mlir::func::FuncOp>()) {
    // kiln.sinusoid requires a specific table, not arbitrary inputs.
    const bool isAnyInput = function.getOps<mlir::kiln::SinusoidOp>().empty();
    if (!function->hasAttr(mlir::kiln::kernelAttrName) || !isAnyInput)
      continue;
    llvm::raw_string_ostream out(texts.emplace_back());
    function.print(out);
  }
  return texts;
}

/// Returns index arguments to try, as long as they make small tensors.
std::vector<std::vector<int64_t>> extentsToTry(const std::string &text) {
  mlir::MLIRContext context;
  auto module = parseKernel(context, text);
  auto function = *module->getOps<mlir::func::FuncOp>().begin();
  std::vector<int64_t> least, most, between;
  for (mlir::kiln::Interval bounds : mlir::kiln::getSymbolBounds(function)) {
    least.push_back(std::max<int64_t>(bounds.min, 1));
    most.push_back(std::max<int64_t>(bounds.max, 1));
    between.push_back((least.back() + most.back()) / 2);
  }
  std::vector<std::vector<int64_t>> result;
  for (const std::vector<int64_t> &extents : {least, between, most}) {
    int64_t elements = 0;
    function.walk([&](mlir::Operation *op) {
      for (mlir::Type type : op->getResultTypes())
        if (auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type))
          elements +=
              mlir::kiln::evaluateExtent(mlir::kiln::getProduct(mlir::kiln::getExtents(tensor), &context), extents);
    });
    if (elements <= mostElements && llvm::find(result, extents) == result.end())
      result.push_back(extents);
  }
  return result;
}

struct Count {
  int kernels = 0, byHalide = 0, runs = 0, compared = 0, results = 0;
  double tight = 0; // sum of interpreter::tightShare over the results
};

void tryKernel(const std::string &text, const ScheduleConfig *config, Count &count) {
  SCOPED_TRACE(text);
  DeviceKernel kernel(text, config);
  ++count.kernels;
  for (const std::vector<int64_t> &extents : extentsToTry(text)) {
    const std::vector<Tensor> tame = randomInputs(text, extents, 0, 2);
    ++count.runs;
    try {
      for (const verify::SharedTensor &result : kernel.expected(extents, tame)) {
        count.tight += interpreter::tightShare(*result);
        ++count.results;
      }
    } catch (const std::runtime_error &) {
      (void)kernel.run(extents, tame); // an index is out of its table's range
      continue;
    }
    ++count.compared;
    kernel.check(extents, tame);
    (void)kernel.run(extents, randomInputs(text, extents, -2000000000, 2000000000));
  }
}

/// Changes the text to another float type; infinities and NaN are written as bits.
std::string withFloats(std::string text, const std::string &type) {
  const bool isHalf = type == "f16";
  const std::pair<std::string, std::string> changes[] = {{"xf32", "x" + type},
                                                         {"tensor<f32>", "tensor<" + type + ">"},
                                                         {"0x7F800000", isHalf ? "0x7C00" : "0x7F80"},
                                                         {"0xFF800000", isHalf ? "0xFC00" : "0xFF80"},
                                                         {"0x7FC00000", isHalf ? "0x7E00" : "0x7FC0"}};
  for (const auto &[from, to] : changes)
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  return text;
}

/// Tries the default configuration, and Halide where it can generate the kernel.
void tryKernel(const std::string &text, Count &count) {
  tryKernel(text, nullptr, count);
  const SearchSpace space = describe(text, "cuda").space;
  if (llvm::none_of(space, [](const TuningParameter &parameter) { return parameter.key == "halide"; }))
    return;
  const ScheduleConfig byHalide{{"halide", 1}};
  ++count.byHalide;
  tryKernel(text, &byHalide, count);
}

void tryModels(const std::string &type, int graphs) {
  const char *given = std::getenv("KILN_CUDA_GRAPHS");
  const uint64_t first = kiln::testing::testSeed();
  const int number = given ? std::atoi(given) : graphs;
  Count count;
  for (int i = 0; i < number && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE("KILN_SEED=" + std::to_string(first + i));
    for (const std::string &text : kernelsOf(fuzz::randomModel(first + i).graph))
      tryKernel(withFloats(text, type), count);
  }
  printf("%d kernels, %d of them by Halide, %d runs, %d compared, %.3f of the bounds tight\n", count.kernels,
         count.byHalide, count.runs, count.compared, count.tight / count.results);
  EXPECT_GT(count.compared, number);
  EXPECT_GT(count.tight, 0.5 * count.results) << "or hardly anything could be wrong";
}

TEST(CudaRandom, KernelsOfModels) { tryModels("f32", 60); }
TEST(CudaRandom, KernelsOfHalves) { tryModels("f16", 30); }
TEST(CudaRandom, KernelsOfBfloats) { tryModels("bf16", 30); }

} // namespace
} // namespace kiln::testing
