// SPDX-License-Identifier: Apache-2.0
// Candidates that do not compile, crash, hang or give wrong results are counted outcomes, and do not affect the
// measurement of the next candidate. Times are not checked, except for a candidate that does its work forty times.
#include "../levels.h"
#include "../target_of.h"
#include "KernelText.h"
#include "compiler/dialect/KilnDialect.h"
#include "compiler/object/Object.h"
#include "compiler/transforms/Passes.h"
#include "compiler/tuner/Task.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"

#include "targets/registry.h"
#include <chrono>
#include <gtest/gtest.h>
#include <unistd.h>

namespace kiln {
namespace {

using testing::KernelText;
using testing::Value;

const std::string targetName = KILN_V2;

/// Returns twice the argument, by a pointwise kernel of s0 rows of 64.
std::string doubling() {
  KernelText text({{1, 1000}});
  std::string type = text.type({"s0", "64"});
  Value x = text.argument(type);
  return text.finish(
      {text.one("pp", {x}, type, {"a, b", "a, b"}, "%s = arith.addf %x0, %x0 : f32\nlinalg.yield %s : f32")});
}

/// Compiles an object of LLVM IR with the entry `kernel(context, rows, x, y)`; it is weak, since other symbols become
/// hidden.
std::string objectOf(const std::string &body) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic error;
  std::string text =
      "declare void @llvm.trap()\ndefine weak i32 @kernel(ptr %c, i32 %s, ptr %x, ptr %y) {\n" + body + "\n}";
  std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, error, context);
  EXPECT_TRUE(module) << error.getMessage().str();
  const TargetInfo &info = findTarget(targetName)->info();
  llvm::Expected<std::string> object = compileToObject(*module, {info.hostTriple, info.hostCpu});
  EXPECT_TRUE(bool(object));
  return *object;
}

/// A compiler that injects the fault of the schedule configuration.
class FaultyCompiler : public KernelCompiler {
public:
  enum Fault { None, Error, CompilerCrash, CompilerHang, Crash, Hang, Wrong, Status, Garbage };

  const KernelAbi &abi() const override { return real.compilerOf({}).abi(); }
  Schedulable describe(mlir::func::FuncOp kernel) const override { return real.compilerOf(kernel).describe(kernel); }

  mlir::FailureOr<KernelObject> compile(mlir::func::FuncOp kernel, llvm::StringRef symbol,
                                        const ScheduleConfig *config) const override {
    mlir::FailureOr<KernelObject> object = real.compilerOf(kernel).compile(kernel, symbol, nullptr);
    switch (config->at("fault")) {
    case None:
      return object;
    case Error:
      return kernel.emitError("this cannot be compiled");
    case CompilerCrash:
      std::abort();
    case CompilerHang:
      sleep(1000);
      break;
    case Crash:
      object->object = objectOf("call void @llvm.trap()\nunreachable");
      break;
    case Hang:
      object->object = objectOf("br label %loop\nloop:\n%v = load volatile i32, ptr %x\nbr label %loop");
      break;
    case Wrong: // leaves the result unchanged
      object->object = objectOf("ret i32 0");
      break;
    case Status:
      object->object = objectOf("ret i32 3");
      break;
    case Garbage:
      object->object = "not an object";
      break;
    }
    return object;
  }
  mlir::FailureOr<std::string> print(mlir::func::FuncOp, llvm::StringRef, kiln::KernelText,
                                     const ScheduleConfig *) const override {
    return mlir::failure();
  }

private:
  const Target &real = *findTarget(targetName);
};

Target targetOf(std::unique_ptr<KernelCompiler> compiler) {
  return testing::targetOf(findTarget(targetName)->info(), {}, std::move(compiler));
}

class Measurements : public ::testing::Test {
protected:
  Measurements() : context(mlir::MLIRContext::Threading::DISABLED) {
    context.loadDialect<mlir::affine::AffineDialect, mlir::arith::ArithDialect, mlir::func::FuncDialect,
                        mlir::linalg::LinalgDialect, mlir::math::MathDialect, mlir::tensor::TensorDialect,
                        mlir::kiln::KilnDialect>();
    module = mlir::parseSourceString<mlir::ModuleOp>(doubling(), &context);
    use = {*module->getOps<mlir::func::FuncOp>().begin(), {false}, {}};
    options.limits = {5, 1.5, 0};
    options.compare.seconds = 0.1;
    options.cpus = {availableCpus().front()};
    options.compileWorkers = 2;
  }

  KernelMeasurements measurements() { return {target, use, {{100}, {7}}, 1 << 20, options}; }
  static ScheduleConfig fault(FaultyCompiler::Fault what) { return {{"fault", what}}; }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  KernelUse use;
  Target target = targetOf(std::make_unique<FaultyCompiler>());
  MeasurementOptions options;
};

const FailedMeasurement *failureOf(const auto &result) { return std::get_if<FailedMeasurement>(&result); }

TEST_F(Measurements, MeasuresWhatIsRight) {
  KernelMeasurements bench = measurements();
  auto codes = bench.compile({fault(FaultyCompiler::None)});
  ASSERT_TRUE(codes && codes->size() == 1 && std::holds_alternative<KernelCode>(codes->front()));
  const KernelCode &code = std::get<KernelCode>(codes->front());
  auto result = bench.measure(code, code);
  ASSERT_TRUE(result);
  ASSERT_EQ(failureOf(*result), nullptr) << failureOf(*result)->words;
  const auto &workloads = std::get<std::vector<Comparison>>(*result);
  ASSERT_EQ(workloads.size(), 2u);
  for (const Comparison &c : workloads) {
    EXPECT_GT(c.seconds, 0);
    EXPECT_GE(c.pairs, 3u); // on a busy machine
    EXPECT_GT(c.ratio, 0.2);
    EXPECT_LT(c.ratio, 5);
  }
}

TEST_F(Measurements, FailuresAreOutcomes) {
  options.limits.compileSeconds = 1;
  KernelMeasurements bench = measurements();
  const ScheduleConfig configs[] = {
      fault(FaultyCompiler::None),         fault(FaultyCompiler::Error),  fault(FaultyCompiler::CompilerCrash),
      fault(FaultyCompiler::CompilerHang), fault(FaultyCompiler::Crash),  fault(FaultyCompiler::Hang),
      fault(FaultyCompiler::Wrong),        fault(FaultyCompiler::Status), fault(FaultyCompiler::Garbage)};
  auto codes = bench.compile(configs);
  ASSERT_TRUE(codes && codes->size() == std::size(configs));
  std::map<int, std::pair<Outcome, std::string>> expected{
      {FaultyCompiler::Error, {Outcome::Failed, "this cannot be compiled"}},
      {FaultyCompiler::CompilerCrash, {Outcome::Crashed, "signal"}},
      {FaultyCompiler::CompilerHang, {Outcome::TimedOut, ""}},
      {FaultyCompiler::Crash, {Outcome::Crashed, "signal"}},
      {FaultyCompiler::Hang, {Outcome::TimedOut, ""}},
      {FaultyCompiler::Wrong, {Outcome::Wrong, "element 0 of result 0 is "}},
      {FaultyCompiler::Status, {Outcome::Crashed, "returned 3"}},
      {FaultyCompiler::Garbage, {Outcome::Crashed, ""}},
  };
  ASSERT_TRUE(std::holds_alternative<KernelCode>(codes->front()));
  const KernelCode &base = std::get<KernelCode>(codes->front());
  for (auto &[fault, outcome] : expected) {
    SCOPED_TRACE(fault);
    const FailedMeasurement *failure = failureOf((*codes)[fault]);
    std::optional<KernelMeasurements::Result<std::vector<Comparison>>> measured;
    if (!failure) {
      measured = bench.measure(base, std::get<KernelCode>((*codes)[fault]));
      ASSERT_TRUE(measured);
      failure = failureOf(*measured);
    }
    ASSERT_NE(failure, nullptr);
    EXPECT_EQ(toString(failure->outcome), toString(outcome.first)) << failure->words;
    EXPECT_NE(failure->words.find(outcome.second), std::string::npos) << failure->words;
  }
  auto after = bench.measure(base, base);
  ASSERT_TRUE(after);
  EXPECT_EQ(failureOf(*after), nullptr) << "the tuner does not go on";
}

// A candidate that is forty times slower is recognised after few pairs of measurements.
TEST_F(Measurements, StopsEarlyOnASlowCandidate) {
  KernelMeasurements bench = measurements();
  auto codes = bench.compile({fault(FaultyCompiler::None)});
  ASSERT_TRUE(codes);
  KernelCode fast = std::get<KernelCode>(codes->front()), slow = fast;
  slow.object = objectOf(R"(
    br label %loop
  loop:
    %i = phi i32 [ 0, %0 ], [ %next, %loop ]
    %next = add i32 %i, 1
    %v = load volatile i32, ptr %x
    %done = icmp eq i32 %next, 100000
    br i1 %done, label %work, label %loop
  work:
    %xp = getelementptr i8, ptr %x, i64 16
    %yp = getelementptr i8, ptr %y, i64 16
    %from = load ptr, ptr %xp
    %to = load ptr, ptr %yp
    %elements = mul i32 %s, 64
    br label %element
  element:
    %e = phi i32 [ 0, %work ], [ %following, %element ]
    %source = getelementptr float, ptr %from, i32 %e
    %target = getelementptr float, ptr %to, i32 %e
    %value = load float, ptr %source
    %twice = fadd float %value, %value
    store float %twice, ptr %target
    %following = add i32 %e, 1
    %all = icmp eq i32 %following, %elements
    br i1 %all, label %end, label %element
  end:
    ret i32 0)");
  auto result = bench.measure(fast, slow);
  ASSERT_TRUE(result);
  ASSERT_EQ(failureOf(*result), nullptr) << failureOf(*result)->words;
  for (const Comparison &c : std::get<std::vector<Comparison>>(*result)) {
    EXPECT_GT(c.ratio, 2);
    EXPECT_LE(c.pairs, options.compare.leastPairs); // fewer where other programs slow them down
  }
}

TEST_F(Measurements, Interrupted) {
  auto start = std::chrono::steady_clock::now();
  options.goesOn = [&] { return std::chrono::steady_clock::now() - start < std::chrono::milliseconds(300); };
  options.limits.compileSeconds = 60;
  KernelMeasurements bench = measurements();
  EXPECT_EQ(bench.compile({fault(FaultyCompiler::CompilerHang)}), std::nullopt);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST_F(Measurements, Probes) {
  KernelMeasurements bench = measurements();
  auto rates = bench.probe();
  ASSERT_TRUE(rates && rates->size() == 2);
  for (const Rates &rate : *rates) {
    EXPECT_GT(rate.operations, 1e8);
    EXPECT_LT(rate.operations, 1e13);
    EXPECT_GT(rate.bytesRead, 1e8);
    EXPECT_GT(rate.bytesCopied, 1e8);
  }
  Work work = measureWork(use.kernel, {100});
  EXPECT_EQ(work.operations, 6400);
  EXPECT_EQ(work.bytesRead, 25600);
  EXPECT_EQ(work.bytesWritten, 25600);
  EXPECT_EQ(leastSeconds({100, 8, 8}, {10, 4, 2}), 10);
  EXPECT_TRUE(isBoundByOperations({100, 8, 8}, {10, 4, 2}));
  EXPECT_EQ(leastSeconds({10, 16, 8}, {10, 4, 2}), 10); // 16 bytes copied, 8 read
  EXPECT_FALSE(isBoundByOperations({10, 16, 8}, {10, 4, 2}));
}

/// A compiler whose default configuration has a fault.
class WrongDefault : public FaultyCompiler {
public:
  explicit WrongDefault(Fault fault) : fault(fault) {}
  Schedulable describe(mlir::func::FuncOp) const override { return {"pointwise", {{"fault", {None, fault}, fault}}}; }

private:
  Fault fault;
};

// Candidates are compared with the default, so that a wrong default would accept wrong candidates.
TEST_F(Measurements, AWrongDefaultIsFound) {
  TuningDatabase database;
  size_t reports = 0;
  auto start = [&](FaultyCompiler::Fault fault) {
    Target wrong = targetOf(std::make_unique<WrongDefault>(fault));
    Task task(wrong, use, {{100}, {7}}, detectMachine(targetName), 1 << 20, options, database,
              [&](const MeasurementReport &) { ++reports; });
    return std::pair(task.start(), task.problem());
  };
  KernelMeasurements bench = measurements();
  auto codes = bench.compile({fault(FaultyCompiler::Wrong)});
  ASSERT_TRUE(codes);
  const KernelCode &code = std::get<KernelCode>(codes->front());
  auto compared = bench.measure(code, code);
  ASSERT_TRUE(compared);
  EXPECT_EQ(failureOf(*compared), nullptr) << "it agrees with itself";

  auto [step, words] = start(FaultyCompiler::Wrong);
  EXPECT_EQ(step, Task::Step::Broken);
  const std::string name = use.kernel.getName().str();
  EXPECT_EQ(words.rfind("the default schedule of " + name + " gives ", 0), 0u) << words;
  EXPECT_NE(words.find("nan where the interpreter gives "), std::string::npos) << words;
  EXPECT_NE(words.find(": element 0 of result 0, 6400 of 6400 differ at extents 100"), std::string::npos) << words;
  std::tie(step, words) = start(FaultyCompiler::Crash);
  EXPECT_EQ(step, Task::Step::Broken);
  EXPECT_EQ(words.rfind("the default schedule of " + name + ": crashed: ", 0), 0u) << words;
  EXPECT_EQ(reports, 0u);
  EXPECT_TRUE(database.records().empty());

  std::tie(step, words) = start(FaultyCompiler::None);
  EXPECT_EQ(step, Task::Step::Went) << words;
  EXPECT_EQ(reports, 1u);
}

} // namespace
} // namespace kiln
