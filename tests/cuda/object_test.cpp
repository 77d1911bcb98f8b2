// SPDX-License-Identifier: Apache-2.0
//
// The object file of a kernel: its symbols, its embedded module, and the host launcher, which runs here with a mock
// launch function that records its calls.
#include "KernelLibrary.h"
#include "KernelText.h"
#include "Prepare.h"
#include "compiler/object/Object.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/src/core/model.h"
#include "targets/cuda/Compile.h"
#include <cstring>
#include <gtest/gtest.h>

namespace {

struct LaunchCall {
  const kiln_cuda_module_t *module;
  uint32_t function, blocks[3];
  int32_t extent;                  // parameter 0
  std::vector<uint64_t> addresses; // the others
};
std::vector<LaunchCall> calls;
int answer = 0;

} // namespace

static int writeDown(kiln_worker_t *, const kiln_cuda_module_t *module, uint32_t function, uint32_t x, uint32_t y,
                     uint32_t z, void **parameters) {
  LaunchCall call{module, function, {x, y, z}, 0, {}};
  std::memcpy(&call.extent, parameters[0], sizeof call.extent);
  for (int i = 1; i < 3; ++i)
    std::memcpy(&call.addresses.emplace_back(), parameters[i], sizeof(uint64_t));
  calls.push_back(call);
  return answer;
}

namespace kiln::testing {
namespace {

/// Returns the sums of columns of exp(x - maximum of the column): two launches, with a thread for each column.
std::string twoSteps() {
  KernelText k({{0, 700}});
  std::string wide = k.type({"20", "s0"}), column = k.type({"s0"});
  Value x = k.argument(wide);
  Value most = k.reduce("pr", {x}, column, {"b, a", "a"}, "0xff800000 : f32",
                        "%s = arith.maximumf %y0, %x0 : f32\nlinalg.yield %s : f32");
  Value sum = k.reduce("pr", {x, most}, column, {"b, a", "a", "a"}, "0.0 : f32",
                       "%d = arith.subf %x0, %x1 : f32\n%e = math.exp %d : f32\n%s = arith.addf %y0, %e : f32\n"
                       "linalg.yield %s : f32");
  return k.finish({sum});
}

TEST(CudaObject, HasAHostLauncherAndAModuleAndCallsOnlyTheLaunch) {
  KernelObject object = compileObject(twoSteps());
  EXPECT_EQ(object.strategy, "loops");
  EXPECT_EQ(toString(object.schedule), "threads=256");
  EXPECT_EQ(object.scratchBytes, 2816) << "700 numbers, and what makes them whole lines";
  auto symbols = globalSymbols(object.object);
  ASSERT_TRUE(bool(symbols));
  std::map<std::string, bool> names;
  for (const ObjectSymbol &symbol : *symbols)
    names[symbol.name] = symbol.defined;
  EXPECT_EQ(names, (std::map<std::string, bool>{
                       {"kiln_cuda_launch", false}, {"some_kernel", true}, {"some_kernel_module", true}}));
  auto renamed = renameKernel(object.object, "some_kernel", "net_cuda_sum_0");
  ASSERT_TRUE(bool(renamed));
  EXPECT_EQ(renamed->find("some_kernel"), std::string::npos) << "the PTX does not know the kernel's name";
}

TEST(CudaObject, IsTheSameEachTime) { EXPECT_EQ(compileObject(twoSteps()).object, compileObject(twoSteps()).object); }

TEST(CudaObject, TheHostLauncherLaunchesWhatThePlanSays) {
  KernelLibrary library(compileObject(twoSteps()).object);
  library.get<decltype(&writeDown)>("launch") = writeDown;
  auto *stub = library.get<int (*)(kiln_worker_t *, int32_t, uint64_t, uint64_t)>("stub");
  const auto *module = library.get<const kiln_cuda_module_t *>("module");
  ASSERT_EQ(module->image_count, 2U);
  for (auto [number, capability] : llvm::enumerate(std::vector<uint32_t>{90, 80})) {
    const kiln_cuda_image_t &image = module->images[number];
    EXPECT_EQ(image.capability, capability);
    EXPECT_EQ(image.is_for_that_alone, 0U);
    EXPECT_NE(llvm::StringRef(image.text).find(".target sm_" + std::to_string(capability)), llvm::StringRef::npos);
  }
  ASSERT_EQ(module->function_count, 2U);
  EXPECT_STREQ(module->functions[1].name, "step_1");
  EXPECT_EQ(module->functions[1].threads, 256U);
  EXPECT_EQ(module->functions[1].is_dependent_launch, 1U);

  kiln_worker_t worker{};
  worker.top = reinterpret_cast<char *>(0x70000);
  calls.clear();
  answer = 0;
  EXPECT_EQ(stub(&worker, 700, 0x1000, 0x2000), 0);
  ASSERT_EQ(calls.size(), 2U);
  for (uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(calls[i].module, module);
    EXPECT_EQ(calls[i].function, i);
    EXPECT_EQ(calls[i].blocks[0], 3U);
    EXPECT_EQ(calls[i].blocks[1], 1U);
    EXPECT_EQ(calls[i].extent, 700);
  }
  EXPECT_EQ(calls[0].addresses, (std::vector<uint64_t>{0x1000, 0x70000}));

  calls.clear();
  EXPECT_EQ(stub(&worker, 0, 0x1000, 0x2000), 0);
  EXPECT_TRUE(calls.empty()) << "no blocks, no launch";
  answer = 7;
  EXPECT_EQ(stub(&worker, 5, 0x1000, 0x2000), 7);
  EXPECT_EQ(calls.size(), 1U) << "the first one failed";
}

TEST(CudaObject, PrintsItsFunctions) {
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module = prepare(context, twoSteps());
  auto compiler = hostCompiler();
  auto function = *module->getOps<mlir::func::FuncOp>().begin();
  auto statement = compiler->print(function, "some_kernel", ::kiln::KernelText::Stmt);
  auto assembly = compiler->print(function, "some_kernel", ::kiln::KernelText::Assembly);
  ASSERT_TRUE(succeeded(statement) && succeeded(assembly));
  EXPECT_NE(statement->find("llvm.func @step_1"), std::string::npos);
  EXPECT_NE(assembly->find(".visible .entry step_1"), std::string::npos);
}

} // namespace
} // namespace kiln::testing
