// SPDX-License-Identifier: Apache-2.0
//
// Compiling many kernels: the objects do not depend on the number of jobs or the cache, and a target that crashes,
// hangs or rejects a kernel gives an error that names the kernel.
#include "../target_of.h"
#include "compiler/driver/CompileKernels.h"
#include "compiler/object/Object.h"
#include "compiler/pipeline/Pipeline.h"

#include "mlir/Parser/Parser.h"
#include "targets/registry.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <csignal>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace kiln {

using namespace mlir;
using ::testing::HasSubstr;

namespace {

/// Fails for kernels with the attribute "test.fault" in the way that it names, and compiles all others.
class FaultyCompiler : public KernelCompiler {
public:
  explicit FaultyCompiler(const Target &real) : target(real) {}

  const KernelAbi &abi() const override { return target.compilerOf({}).abi(); }
  Schedulable describe(func::FuncOp kernel) const override { return target.compilerOf(kernel).describe(kernel); }

  FailureOr<KernelObject> compile(func::FuncOp kernel, StringRef symbol, const ScheduleConfig *config) const override {
    auto fault = kernel->getAttrOfType<StringAttr>("test.fault");
    if (!fault)
      return target.compilerOf(kernel).compile(kernel, symbol, config);
    if (fault == "refuse")
      return kernel.emitError() << "target: unsupported kernel; expected another";
    if (fault == "throw")
      throw std::runtime_error("thrown by the target");
    if (fault == "crash") {
      llvm::errs() << "Internal error, with words";
      signal(SIGABRT, SIG_DFL);
      abort();
    }
    if (fault == "warn")
      llvm::errs() << "Warning: " << kernel.getName() << "\n";
    while (fault == "hang")
      pause();
    return target.compilerOf(kernel).compile(kernel, symbol, config);
  }
  FailureOr<KernelObject> compileChecked(func::FuncOp kernel, StringRef symbol,
                                         const ScheduleConfig *config) const override {
    if (kernel->hasAttr("test.fault"))
      return kernel.emitError() << kernel.getName() << ": element (3) of result 0 is never written";
    return target.compilerOf(kernel).compileChecked(kernel, symbol, config);
  }
  FailureOr<std::string> print(func::FuncOp kernel, StringRef symbol, KernelText form,
                               const ScheduleConfig *config) const override {
    return target.compilerOf(kernel).print(kernel, symbol, form, config);
  }

private:
  const Target &target;
};

/// Returns the target of that name with a faulty compiler.
Target faultyTarget(StringRef name) {
  const Target &real = *findTarget(name);
  return testing::targetOf(real.info(), real.hooks(), std::make_unique<FaultyCompiler>(real));
}

/// Returns x + value, `columns` wide.
std::string addKernel(StringRef name, int columns, double value, StringRef fault = "") {
  constexpr const char *text = R"(
func.func private @{0}(%x: tensor<{1}xf32>) -> tensor<{1}xf32>
    attributes {{kiln.kernel, kiln.bounds = array<i64>{3}} {{
  %c = arith.constant {2:e} : f32
  %e = tensor.empty() : tensor<{1}xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<{1}xf32>) outs(%e : tensor<{1}xf32>) {{
    ^bb0(%a: f32, %o: f32):
      %s = arith.addf %a, %c : f32
      linalg.yield %s : f32
  } -> tensor<{1}xf32>
  return %r : tensor<{1}xf32>
}
)";
  const std::string attribute = fault.empty() ? "" : llvm::formatv(", test.fault = \"{0}\"", fault).str();
  return llvm::formatv(text, name, columns, value, attribute);
}

class CompileKernels : public ::testing::Test {
protected:
  CompileKernels() : context(registry(), MLIRContext::Threading::DISABLED), target(faultyTarget("x86-64-v3")) {
    context.loadAllAvailableDialects();
  }
  static DialectRegistry registry() {
    DialectRegistry dialects;
    mlir::kiln::registerPipelineDialects(dialects);
    return dialects;
  }

  std::vector<KernelRequest> parse(const std::string &text, const std::string &model) {
    modules.push_back(parseSourceString<ModuleOp>(text, &context));
    std::vector<KernelRequest> requests;
    for (auto function : modules.back()->getOps<func::FuncOp>())
      requests.push_back({function, &target, model + "_" + function.getName().str(), {}});
    return requests;
  }

  FailureOr<std::vector<KernelObject>> compile(ArrayRef<KernelRequest> requests, KernelOptions options = {}) {
    errors.clear();
    events.clear();
    options.progress = [&](const KernelProgress &progress) {
      EXPECT_EQ(progress.done, events.size() + 1);
      events.push_back(progress.kernel.symbol + (progress.isCached ? " cached" : ""));
      total = progress.total;
    };
    llvm::raw_string_ostream stream(errors);
    return compileKernels(requests, options, stream);
  }

  static std::vector<std::string> bytes(const std::vector<KernelObject> &objects) {
    std::vector<std::string> list;
    for (const KernelObject &object : objects)
      list.push_back(object.object);
    return list;
  }

  MLIRContext context;
  Target target;
  std::vector<OwningOpRef<ModuleOp>> modules;
  std::string errors;
  std::vector<std::string> events;
  size_t total = 0;
};

std::string fourKernels() {
  return addKernel("k0", 40, 1) + addKernel("k1", 41, 2) + addKernel("k2", 40, 1) + addKernel("k3", 4, 3);
}

/// Accepts only the kernel "k1".
class OneKernelCompiler : public FaultyCompiler {
public:
  using FaultyCompiler::FaultyCompiler;
  bool accepts(func::FuncOp kernel) const override { return kernel.getName() == "k1"; }
  FailureOr<KernelObject> compile(func::FuncOp kernel, StringRef symbol, const ScheduleConfig *config) const override {
    auto object = FaultyCompiler::compile(kernel, symbol, config);
    object->strategy = "one";
    return object;
  }
};

TEST_F(CompileKernels, TheFirstCompilerThatAcceptsTakesAKernel) {
  const Target &real = *findTarget("x86-64-v3");
  const Target two = testing::targetOf(real.info(), real.hooks(), std::make_unique<OneKernelCompiler>(real),
                                       std::make_unique<FaultyCompiler>(real));
  std::vector<KernelRequest> requests = parse(fourKernels(), "m");
  for (KernelRequest &request : requests)
    request.target = &two;
  auto objects = compile(requests);
  ASSERT_TRUE(succeeded(objects)) << errors;
  for (size_t i = 0; i < requests.size(); ++i)
    EXPECT_EQ((*objects)[i].strategy, i == 1 ? "one" : "pointwise");
}

/// Crashes, but has a fallback that does not.
class MendedCompiler : public FaultyCompiler {
public:
  explicit MendedCompiler(const Target &real) : FaultyCompiler(real), other(real.compilerOf({})) {}
  const KernelCompiler *fallback() const override { return &other; }

private:
  const KernelCompiler &other;
};

/// Whether jobs write nothing to standard error: the address sanitizer warns there when a job changes its stack.
#ifndef __has_feature // in g++
#define __has_feature(feature) 0
#endif
#if __has_feature(address_sanitizer) || defined(__SANITIZE_ADDRESS__)
constexpr bool jobsAreQuiet = false;
#else
constexpr bool jobsAreQuiet = true;
#endif
#define KILN_NEEDS_QUIET_JOBS()                                                                                        \
  if (!jobsAreQuiet)                                                                                                   \
  GTEST_SKIP() << "the address sanitizer prints where jobs do"

TEST_F(CompileKernels, AKernelAtWhichTheCodeGeneratorCrashesIsCompiledByTheFallback) {
  const Target &real = *findTarget("x86-64-v3");
  const Target mended = testing::targetOf(real.info(), real.hooks(), std::make_unique<MendedCompiler>(real));
  std::vector<KernelRequest> requests =
      parse(addKernel("k0", 40, 1) + addKernel("k1", 41, 2, "crash") + addKernel("k2", 42, 2, "refuse"), "m");
  for (KernelRequest &request : requests)
    request.target = &mended;
  EXPECT_TRUE(failed(compile(requests))) << "what is refused is refused once";
  EXPECT_EQ(StringRef(errors).count("target: unsupported kernel; expected another"), 1u) << errors;
  requests.pop_back();
  std::filesystem::path folder = std::filesystem::temp_directory_path() / ("kiln_fallback_" + std::to_string(getpid()));
  ObjectCache cache(folder.string());
  for (bool isCached : {false, true}) {
    auto objects = compile(requests, {.cache = &cache});
    ASSERT_TRUE(succeeded(objects)) << errors;
    if (jobsAreQuiet)
      EXPECT_EQ(errors, "");
    EXPECT_FALSE((*objects)[0].isFallback);
    EXPECT_TRUE((*objects)[1].isFallback);
    EXPECT_EQ(StringRef(events.back()).ends_with(" cached"), isCached);
  }
  std::filesystem::remove_all(folder);
}

TEST_F(CompileKernels, GivesTheSameWhateverTheJobs) {
  std::vector<KernelRequest> requests = parse(fourKernels(), "m");
  auto one = compile(requests, {.workers = 1});
  ASSERT_TRUE(succeeded(one)) << errors;
  for (unsigned workers : {0, 2, 5}) {
    auto many = compile(requests, {.workers = workers});
    ASSERT_TRUE(succeeded(many)) << errors;
    EXPECT_EQ(bytes(*one), bytes(*many)) << workers;
  }
  EXPECT_EQ(events.size(), 3u) << "k2 is k0";
  EXPECT_EQ(total, 3u);
  for (auto [request, object] : llvm::zip_equal(requests, *one)) {
    EXPECT_EQ(object.strategy, "pointwise");
    auto symbols = globalSymbols(object.object);
    ASSERT_TRUE(!!symbols);
    bool isFound = false;
    for (const ObjectSymbol &symbol : *symbols) {
      isFound |= symbol.defined && symbol.name == request.symbol;
      EXPECT_TRUE(!symbol.defined || StringRef(symbol.name).starts_with(request.symbol)) << symbol.name;
    }
    EXPECT_TRUE(isFound) << request.symbol;
    EXPECT_EQ(object.object.find("kiln_any_kernel"), std::string::npos) << "in " << request.symbol;
  }
}

TEST_F(CompileKernels, NamesWhatFailedInTheOrderOfTheKernels) {
  KILN_NEEDS_QUIET_JOBS();
  const std::string text = addKernel("k0", 4, 1) + addKernel("k1", 5, 1, "hang") + addKernel("k2", 6, 1, "crash") +
                           addKernel("k3", 7, 1, "refuse") + addKernel("k4", 8, 1, "throw") +
                           addKernel("k5", 9, 1, "warn");
  std::vector<KernelRequest> requests = parse(text, "m");
  std::string first;
  for (unsigned workers : {1, 4}) {
    EXPECT_TRUE(failed(compile(requests, {.workers = workers, .secondsLimit = 2})));
    EXPECT_THAT(errors, ::testing::MatchesRegex(
                            "error: kernel \"m_k1\": compilation took too long; expected at most 2 seconds\n"
                            "Internal error, with words\n"
                            "error: the code generator crashed at kernel \"m_k2\": killed by signal "
                            "6 [(]Aborted[)]\n"
                            "[^\n]*error: target: unsupported kernel; expected another\n(.|\n)*"
                            "error: kernel \"m_k4\" cannot be compiled: thrown by the target\n"
                            "Warning: k5\n"));
    EXPECT_EQ(events.size(), 6u) << "the others are tried";
    if (workers == 1)
      first = errors;
    EXPECT_EQ(errors, first);
  }
}

TEST_F(CompileKernels, PassesOnWhatAJobPrints) {
  KILN_NEEDS_QUIET_JOBS();
  auto objects = compile(parse(addKernel("loud", 4, 1, "warn"), "m"));
  EXPECT_TRUE(succeeded(objects));
  EXPECT_EQ(errors, "Warning: loud\n");
}

TEST_F(CompileKernels, PrintsInOrder) {
  std::vector<KernelRequest> requests = parse(fourKernels(), "m");
  llvm::raw_string_ostream stream(errors);
  auto texts = printKernels(requests, KernelText::Assembly, {.workers = 3}, stream);
  ASSERT_TRUE(succeeded(texts)) << errors;
  for (auto [request, text] : llvm::zip_equal(requests, *texts))
    EXPECT_THAT(text, HasSubstr(".globl\t" + request.symbol + "\n"));
}

class CachedKernels : public CompileKernels {
protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "kiln-cache-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  size_t countCompiled() const {
    return llvm::count_if(events, [](const std::string &event) { return !StringRef(event).ends_with(" cached"); });
  }
  std::string folder;
};

TEST_F(CachedKernels, ServeEveryModelOfTheSameKernel) {
  ObjectCache cache(folder);
  auto plain = compile(parse(fourKernels(), "m"));
  auto first = compile(parse(fourKernels(), "m"), {.cache = &cache});
  ASSERT_TRUE(succeeded(plain) && succeeded(first)) << errors;
  EXPECT_EQ(countCompiled(), 3u);
  auto second = compile(parse(fourKernels(), "m"), {.cache = &cache});
  ASSERT_TRUE(succeeded(second)) << errors;
  EXPECT_EQ(countCompiled(), 0u);
  EXPECT_EQ(events.size(), 3u);
  EXPECT_EQ(bytes(*plain), bytes(*first));
  EXPECT_EQ(bytes(*plain), bytes(*second));
  EXPECT_EQ((*second)[1].schedule, (*plain)[1].schedule);
  EXPECT_EQ((*second)[1].strategy, (*plain)[1].strategy);
  EXPECT_EQ((*second)[1].scratchBytes, (*plain)[1].scratchBytes);

  // Another model, with other names, and one new kernel.
  const std::string other = addKernel("alpha", 41, 2) + addKernel("beta", 43, 2);
  auto others = compile(parse(other, "other"), {.cache = &cache}), fresh = compile(parse(other, "other"));
  ASSERT_TRUE(succeeded(others) && succeeded(fresh)) << errors;
  EXPECT_EQ(bytes(*others), bytes(*fresh));
  auto again = compile(parse(addKernel("gamma", 43, 2), "third"), {.cache = &cache});
  ASSERT_TRUE(succeeded(again)) << errors;
  EXPECT_EQ(countCompiled(), 0u);
}

TEST_F(CachedKernels, AreThoseOfTheTargetAndTheSchedule) {
  ObjectCache cache(folder);
  std::vector<KernelRequest> requests = parse(addKernel("k", 4096, 2), "m");
  ASSERT_TRUE(succeeded(compile(requests, {.cache = &cache}))) << errors;
  Target v2 = faultyTarget("x86-64-v2");
  requests[0].target = &v2;
  ASSERT_TRUE(succeeded(compile(requests, {.cache = &cache}))) << errors;
  EXPECT_EQ(countCompiled(), 1u) << "of another target";
  requests[0].config = ScheduleConfig();
  ASSERT_TRUE(succeeded(compile(requests, {.cache = &cache}))) << errors;
  EXPECT_EQ(countCompiled(), 1u) << "with another configuration";
  ASSERT_TRUE(succeeded(compile(requests, {.cache = &cache}))) << errors;
  EXPECT_EQ(countCompiled(), 0u);
}

TEST_F(CachedKernels, AreCompiledAgainWhenDamaged) {
  ObjectCache cache(folder);
  auto first = compile(parse(fourKernels(), "m"), {.cache = &cache});
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    std::filesystem::resize_file(entry.path(), 100);
  auto second = compile(parse(fourKernels(), "m"), {.cache = &cache});
  ASSERT_TRUE(succeeded(first) && succeeded(second)) << errors;
  EXPECT_EQ(countCompiled(), 3u);
  EXPECT_EQ(bytes(*first), bytes(*second));
}

TEST_F(CachedKernels, AreCheckedIfThatIsWanted) {
  ObjectCache cache(folder);
  const std::string text = addKernel("k0", 40, 1) + addKernel("k1", 41, 2, "warn");
  ASSERT_TRUE(succeeded(compile(parse(text, "m"), {.cache = &cache}))) << errors;
  EXPECT_TRUE(failed(compile(parse(text, "m"), {.cache = &cache, .checksMemory = true})));
  EXPECT_EQ(countCompiled(), 2u) << "those of the cache were not checked";
  EXPECT_THAT(errors, HasSubstr("error: k1: element (3) of result 0 is never written"));
  EXPECT_TRUE(succeeded(compile(parse(text, "m"), {.cache = &cache}))) << errors;
}

// Failures are not cached.
TEST_F(CachedKernels, AreThoseThatCompiled) {
  ObjectCache cache(folder);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(failed(compile(parse(addKernel("k", 4, 1, "refuse"), "m"), {.cache = &cache})));
    EXPECT_THAT(errors, HasSubstr("target: unsupported kernel; expected another"));
  }
}

} // namespace

} // namespace kiln
