// SPDX-License-Identifier: Apache-2.0
// Tuning on a GPU, with a driver that runs kernels on an interpreter (tools/fake-cuda) unless KILN_CUDA_DRIVER names
// a real one: candidates that are wrong, hang, or break their context do not affect other candidates. The fake driver's
// events measure 2 us plus a nanosecond for each warp instruction, so that times are the same in each run.
#include "../target_of.h"
#include "KernelText.h"
#include "LinearKernel.h"
#include "compiler/dialect/KilnDialect.h"
#include "compiler/schedule/Choose.h"
#include "compiler/tuner/TargetsToTune.h"
#include "compiler/tuner/Task.h"
#include "targets/cuda/Compile.h"
#include "targets/cuda/plan/HostLauncher.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"

#include <cstdlib>
#include <gtest/gtest.h>

namespace kiln {
namespace {

using testing::KernelText;
using testing::Value;

/// Returns twice the argument, by a pointwise kernel of s0 rows of 16. It is strict, so that the loop strategy is used,
/// and not Halide.
std::string doubling() {
  KernelText text({{1, 1000}});
  std::string type = text.type({"s0", "16"});
  Value x = text.argument(type);
  return text.finish({text.one("pp", {x}, type, {"a, b", "a, b"},
                               "%s = arith.addf %x0, %x0 {kiln.strict} : f32\nlinalg.yield %s : f32")});
}

/// A compiler of the cuda target that injects the fault of a configuration's "fault" parameter, if there is one.
class FaultyCompiler : public KernelCompiler {
public:
  enum Fault { None, Wrong, Trap, Hang, Garbage, Error };

  const KernelAbi &abi() const override { return real->abi(); }
  Schedulable describe(mlir::func::FuncOp kernel) const override { return real->describe(kernel); }
  mlir::FailureOr<KernelObject> compile(mlir::func::FuncOp kernel, llvm::StringRef symbol,
                                        const ScheduleConfig *config) const override {
    ScheduleConfig rest = *config;
    const auto fault = rest.extract("fault");
    mlir::FailureOr<cuda::LaunchPlan> plan = cuda::planKernel(kernel, &rest);
    if (failed(plan))
      return mlir::failure();
    for (cuda::Image &image : plan->images)
      if (fault)
        spoil(image.text, Fault(fault.mapped()));
    if (fault && fault.mapped() == Wrong) // leaves the results unchanged
      plan->launches.clear();
    if (fault && fault.mapped() == Error)
      return kernel.emitError("this cannot be compiled");
    const TargetInfo &info = findTarget("cuda")->info();
    llvm::Expected<std::string> object =
        cuda::compileHostLauncher(*plan, kernel, symbol, info.hostTriple, info.hostCpu);
    EXPECT_TRUE(bool(object));
    return KernelObject{*object, plan->scratchBytes, 0, plan->strategy, plan->schedule};
  }
  mlir::FailureOr<std::string> print(mlir::func::FuncOp, llvm::StringRef, kiln::KernelText,
                                     const ScheduleConfig *) const override {
    return mlir::failure();
  }

private:
  static void spoil(std::string &text, Fault fault) {
    const size_t end = text.rfind("ret;");
    ASSERT_NE(end, std::string::npos);
    if (fault == Trap)
      text.replace(end, 4, "trap;");
    if (fault == Hang)
      text.replace(end, 4, "\n$L__hang:\n\tbra.uni \t$L__hang;");
    if (fault == Garbage)
      text.replace(end, 4, "dance;");
  }

  std::unique_ptr<KernelCompiler> real =
      cuda::createKernelCompiler(findTarget("cuda")->info().hostTriple, findTarget("cuda")->info().hostCpu);
};

Target faultyTarget() { return testing::targetOf(findTarget("cuda")->info(), {}, std::make_unique<FaultyCompiler>()); }

class CudaMeasurements : public ::testing::Test {
protected:
  CudaMeasurements() {
    context.loadDialect<mlir::affine::AffineDialect, mlir::arith::ArithDialect, mlir::func::FuncDialect,
                        mlir::linalg::LinalgDialect, mlir::math::MathDialect, mlir::tensor::TensorDialect,
                        mlir::kiln::KilnDialect>();
    use = parse(doubling());
    options.limits = {60, 20, 0};
    options.compare.seconds = 0.1;
    options.compare.mostPairs = 7;
    options.cpus = {availableCpus().front()};
    options.compileWorkers = 1;
  }
  ~CudaMeasurements() override { unsetenv("KILN_FAKE_CUDA_INJECT"), unsetenv("KILN_FAKE_CUDA_DEVICES"); }

  KernelUse parse(const std::string &text) {
    modules.push_back(mlir::parseSourceString<mlir::ModuleOp>(text, &context));
    EXPECT_TRUE(modules.back());
    mlir::func::FuncOp kernel = *modules.back()->getOps<mlir::func::FuncOp>().begin();
    return {kernel, std::vector<bool>(kernel.getNumArguments() - 1, false), {}};
  }
  KernelMeasurements measurements(int64_t rotatedBytes = 1 << 20) {
    return {target, use, {{37}, {3}}, rotatedBytes, options};
  }
  KernelCode codeOf(KernelMeasurements &bench, const ScheduleConfig &config) {
    auto codes = bench.compile({config});
    EXPECT_TRUE(codes && std::holds_alternative<KernelCode>(codes->front()));
    return std::get<KernelCode>(codes->front());
  }

  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> modules;
  KernelUse use;
  Target target = faultyTarget();
  MeasurementOptions options;
};

const FailedMeasurement *failureOf(const auto &result) { return std::get_if<FailedMeasurement>(&result); }

TEST_F(CudaMeasurements, TimesAreTheEvents) {
  KernelMeasurements bench = measurements();
  const KernelCode small = codeOf(bench, {{"threads", 64}}), large = codeOf(bench, {{"threads", 512}});
  auto same = bench.measure(small, small), other = bench.measure(small, large);
  ASSERT_TRUE(same && other);
  ASSERT_EQ(failureOf(*same), nullptr) << failureOf(*same)->words;
  ASSERT_EQ(failureOf(*other), nullptr) << failureOf(*other)->words;
  const auto &equal = std::get<std::vector<Comparison>>(*same), &slower = std::get<std::vector<Comparison>>(*other);
  ASSERT_EQ(equal.size(), 2u);
  for (const Comparison &c : equal) {
    EXPECT_NEAR(c.ratio, 1, 1e-3) << "the driver's clock does not depend on the machine's";
    EXPECT_GT(c.seconds, 2e-6);
    EXPECT_LT(c.seconds, 20e-6);
  }
  EXPECT_GT(equal[0].seconds, equal[1].seconds) << "of more rows";
  EXPECT_GT(slower[1].ratio, 1.03) << "15 warps have nothing to do for 48 elements";
}

TEST_F(CudaMeasurements, FailuresAreOutcomes) {
  KernelMeasurements bench = measurements();
  const KernelCode base = codeOf(bench, {});
  const std::map<FaultyCompiler::Fault, std::pair<Outcome, std::string>> expected{
      {FaultyCompiler::Error, {Outcome::Failed, "this cannot be compiled"}},
      {FaultyCompiler::Wrong, {Outcome::Wrong, "nan, with the default schedule "}},
      {FaultyCompiler::Trap, {Outcome::Crashed, "CUDA_ERROR_"}},
      {FaultyCompiler::Hang, {Outcome::TimedOut, ""}},
      {FaultyCompiler::Garbage, {Outcome::Crashed, "driver cannot assemble it"}},
  };
  bench.limitMeasuring(3);
  for (const auto &[fault, outcome] : expected) {
    SCOPED_TRACE(fault);
    auto codes = bench.compile({ScheduleConfig{{"fault", fault}}});
    ASSERT_TRUE(codes);
    const FailedMeasurement *failure = failureOf(codes->front());
    std::optional<KernelMeasurements::Result<std::vector<Comparison>>> measured;
    if (!failure) {
      measured = bench.measure(base, std::get<KernelCode>(codes->front()));
      ASSERT_TRUE(measured);
      failure = failureOf(*measured);
    }
    ASSERT_NE(failure, nullptr);
    EXPECT_EQ(toString(failure->outcome), toString(outcome.first)) << failure->words;
    EXPECT_NE(failure->words.find(outcome.second), std::string::npos) << failure->words;
  }
  bench.limitMeasuring(20);
  auto after = bench.measure(base, base);
  ASSERT_TRUE(after);
  EXPECT_EQ(failureOf(*after), nullptr) << failureOf(*after)->words;
}

// The second kernel that runs is the candidate's; its error is sticky in the context of the child process.
TEST_F(CudaMeasurements, AStickyErrorCostsOneCandidate) {
  KernelMeasurements bench = measurements();
  const KernelCode code = codeOf(bench, {});
  for (auto [injected, name] :
       {std::pair("kernel:2:700", "CUDA_ERROR_ILLEGAL_ADDRESS"), std::pair("kernel:9:719", "CUDA_ERROR_LAUNCH_FAILED"),
        std::pair("cuMemAlloc_v2:2:2", "CUDA_ERROR_OUT_OF_MEMORY"),
        std::pair("cuGraphLaunch:1:700", "CUDA_ERROR_ILLEGAL_ADDRESS")}) {
    SCOPED_TRACE(injected);
    setenv("KILN_FAKE_CUDA_INJECT", injected, 1);
    auto broken = bench.measure(code, code);
    ASSERT_TRUE(broken);
    ASSERT_NE(failureOf(*broken), nullptr);
    EXPECT_EQ(failureOf(*broken)->outcome, Outcome::Crashed);
    EXPECT_NE(failureOf(*broken)->words.find(name), std::string::npos) << failureOf(*broken)->words;
    unsetenv("KILN_FAKE_CUDA_INJECT");
    auto next = bench.measure(code, code);
    ASSERT_TRUE(next);
    EXPECT_EQ(failureOf(*next), nullptr) << failureOf(*next)->words;
  }
}

// Each copy of a weight is on the device, and has the same contents.
TEST_F(CudaMeasurements, WeightsRotate) {
  use.isFresh = {true};
  const KernelData data(use, {3}, 5 * 3 * 16 * 4, target.compilerOf(use.kernel).abi());
  EXPECT_EQ(data.rotations(), 5u);
  KernelMeasurements bench = measurements(5 * 37 * 16 * 4);
  const KernelCode code = codeOf(bench, {});
  auto result = bench.measure(code, code);
  ASSERT_TRUE(result);
  EXPECT_EQ(failureOf(*result), nullptr) << failureOf(*result)->words;
}

TEST_F(CudaMeasurements, DefaultsAreComparedWithTheInterpreter) {
  KernelMeasurements bench = measurements();
  auto right = bench.check(codeOf(bench, {})), wrong = bench.check(codeOf(bench, {{"fault", FaultyCompiler::Wrong}}));
  ASSERT_TRUE(right && wrong);
  ASSERT_EQ(failureOf(*right), nullptr) << failureOf(*right)->words;
  EXPECT_EQ(std::get<std::string>(*right), "");
  ASSERT_NE(failureOf(*wrong), nullptr);
  EXPECT_EQ(failureOf(*wrong)->outcome, Outcome::Wrong);
  EXPECT_NE(failureOf(*wrong)->words.find("nan where the interpreter gives"), std::string::npos);
}

TEST_F(CudaMeasurements, TheMachineIsTheGpu) {
  const TargetInfo &info = findTarget("cuda")->info();
  setenv("KILN_FAKE_CUDA_DEVICES", "9.0:64,8.0", 1);
  auto hopper = findMachine(info);
  ASSERT_TRUE(bool(hopper)) << llvm::toString(hopper.takeError());
  EXPECT_EQ(toString(*hopper), "cuda/Interpreted-GPU-9.0/9.0/m:64M");
  setenv("KILN_FAKE_CUDA_DEVICES", "8.0:40960", 1);
  auto ampere = findMachine(info);
  ASSERT_TRUE(bool(ampere)) << llvm::toString(ampere.takeError());
  EXPECT_EQ(toString(*ampere), "cuda/Interpreted-GPU-8.0/8.0/m:40G");
  setenv("KILN_FAKE_CUDA_DEVICES", "none", 1);
  std::vector<std::string> notes;
  EXPECT_TRUE(findTargets({"cuda"}, {}, [&](const std::string &note) { notes.push_back(note); }).empty());
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].rfind("leaving out cuda: CUDA driver: start failed; expected success", 0), 0u) << notes[0];
}

// A whole search: its results are in the file under the GPU's name, a second run continues it, and a build uses it for
// any number of threads.
TEST_F(CudaMeasurements, ATaskIsTuned) {
  auto machine = findMachine(findTarget("cuda")->info());
  ASSERT_TRUE(bool(machine));
  TuningDatabase database;
  size_t reports = 0;
  auto makeTask = [&] {
    return Task(*findTarget("cuda"), use, {{3}}, *machine, 1 << 20, options, database,
                [&](const MeasurementReport &) { ++reports; });
  };
  options.compare.threads = 1;
  Task task = makeTask();
  ASSERT_EQ(task.start(), Task::Step::Went) << task.problem();
  EXPECT_EQ(task.unchecked(), "");
  while (!task.state().isDone)
    ASSERT_EQ(task.advance(4, [] { return false; }), Task::Step::Went);
  ASSERT_EQ(task.finish(), Task::Step::Went);
  EXPECT_EQ(task.state().best, (ScheduleConfig{{"threads", 64}}));
  ASSERT_EQ(database.records().size(), 4u) << database.text();
  for (const auto &[of, result] : database.records()) {
    EXPECT_EQ(of.machine, *machine);
    EXPECT_EQ(of.threads, 1);
    EXPECT_EQ(result.outcome, Outcome::Measured);
  }
  std::vector<std::string> problems;
  EXPECT_EQ(TuningDatabase::parse(database.text(), "file", problems).text(), database.text());
  EXPECT_TRUE(problems.empty()) << problems.front();

  const size_t before = reports;
  Task again = makeTask();
  ASSERT_EQ(again.start(), Task::Step::Went);
  EXPECT_EQ(again.state().best, task.state().best);
  EXPECT_EQ(reports, before) << "nothing is measured twice";

  for (int64_t threads : {0, 1, 8}) {
    auto chooser = ScheduleChooser::create(database, {"", threads});
    ASSERT_TRUE(bool(chooser));
    const ScheduleChoice choice =
        chooser->choose(keyOf(use.kernel), findTarget("cuda")->compilerOf(use.kernel).describe(use.kernel), "cuda");
    EXPECT_EQ(choice.provenance, Provenance::Exact);
    EXPECT_EQ(choice.config, task.state().best);
  }
}

// Configurations that exceed the GPU's resources are no candidates.
TEST_F(CudaMeasurements, CandidatesThatDoNotFitAreLeftOut) {
  const std::string text = testing::linearKernel(512, 64, "", 512);
  const KernelUse product = parse(text);
  TuningDatabase database;
  const Target &cuda = *findTarget("cuda");
  const Schedulable schedulable = cuda.compilerOf(product.kernel).describe(product.kernel);
  auto sizeOn = [&](int64_t capability) {
    const Task task(cuda, product, {{512}}, makeGpu("cuda", "A GPU", capability, int64_t(8) << 30), 1 << 20, options,
                    database, [](const MeasurementReport &) {});
    return task.state().size;
  };
  const std::optional<size_t> all = Search(schedulable.space, [](const ScheduleConfig &) { return 0.0; }, 1).size();
  ASSERT_TRUE(all && sizeOn(80) && sizeOn(75));
  EXPECT_LT(*sizeOn(80), *all);
  EXPECT_LT(*sizeOn(75), *sizeOn(80)) << "which has less shared memory";
  EXPECT_GT(*sizeOn(75), 0u);
}

TEST_F(CudaMeasurements, TmaVariantsAreMeasured) {
  setenv("KILN_FAKE_CUDA_DEVICES", "9.0:512", 1);
  std::string text = testing::linearKernel(512, 64, "", 512);
  text.insert(text.find("kiln.inplace"), "kiln.tf32, ");
  const KernelUse product = parse(text);
  KernelMeasurements bench(*findTarget("cuda"), product, {{3}}, 1 << 20, options);
  const KernelCode code = codeOf(bench, {});
  auto measured = bench.measure(code, code);
  ASSERT_TRUE(measured);
  EXPECT_EQ(failureOf(*measured), nullptr) << failureOf(*measured)->words;
}

// Parameters of a GEMM variant that is not launched keep their defaults: spaces stay small enough to enumerate.
TEST_F(CudaMeasurements, ParametersWithoutEffectKeepTheirDefaults) {
  std::string text = testing::linearKernel(512, 64, "", 512);
  text.insert(text.find("kiln.inplace"), "kiln.tf32, ");
  const KernelUse product = parse(text);
  TuningDatabase database;
  const Target &cuda = *findTarget("cuda");
  const Schedulable schedulable = cuda.compilerOf(product.kernel).describe(product.kernel);
  EXPECT_FALSE(Search(schedulable.space, [](const ScheduleConfig &) { return 0.0; }, 1).size());
  auto sizeOn = [&](int64_t capability) {
    const Task task(cuda, product, {{512}}, makeGpu("cuda", "A GPU", capability, int64_t(80) << 30), 1 << 20, options,
                    database, [](const MeasurementReport &) {});
    return task.state().size.value_or(0);
  };
  size_t plain = 1, tma = 1;
  for (const TuningParameter &parameter : schedulable.space)
    (llvm::StringRef(parameter.key).starts_with("wgmma_") ? tma : plain) *= parameter.values.size();
  EXPECT_GT(sizeOn(80), plain / 20);
  EXPECT_LT(sizeOn(80), plain);
  EXPECT_GT(sizeOn(90), tma / 20);
  EXPECT_LT(sizeOn(90), tma);
}

} // namespace
} // namespace kiln
