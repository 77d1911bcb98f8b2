// SPDX-License-Identifier: Apache-2.0
#include "compiler/tuner/Measurements.h"

#include "compiler/tuner/Reference.h"
#include "mlir/IR/Diagnostics.h"
#include "runtime/src/core/model.h"
#include <fmt/format.h>

namespace kiln {

using namespace mlir;

MeasurementOptions makeMeasurementOptions(unsigned threads, const RunnerOptions &runner) {
  MeasurementOptions options;
  const std::vector<int> cpus = availableCpus();
  options.compileWorkers = unsigned(cpus.size());
  options.compare.threads = threads;
  options.runner = runner;
  if (!runner.script.empty())
    return options;
  assert(threads <= cpus.size() && "the caller has checked");
  options.cpus.assign(cpus.end() - threads, cpus.end());
  return options;
}

std::optional<std::vector<JobResult>> runWhile(llvm::ArrayRef<Job> jobs, unsigned workers, JobLimits limits,
                                               const std::function<bool()> &goesOn) {
  static constexpr double tick = 0.1;
  std::vector<JobResult> results(jobs.size());
  JobGroup group(limits);
  size_t started = 0, finished = 0;
  while (finished < jobs.size()) {
    if (goesOn && !goesOn())
      return std::nullopt; // destroying the group kills them
    for (; started < jobs.size() && group.size() < workers; ++started)
      group.start(jobs[started], started);
    if (auto ended = group.wait(tick)) {
      results[ended->first] = std::move(ended->second);
      ++finished;
    }
  }
  // A signal to the whole process group kills children and asks this process to end.
  if (goesOn && !goesOn())
    return std::nullopt;
  return results;
}

static FailedMeasurement toFailure(const JobResult &result, Outcome whenFailed) {
  switch (result.outcome) {
  case JobOutcome::Crashed:
    return {Outcome::Crashed, result.error};
  case JobOutcome::TimedOut:
    return {Outcome::TimedOut, result.error};
  default:
    return {whenFailed, result.error};
  }
}

KernelMeasurements::KernelMeasurements(const Target &target, const KernelUse &use,
                                       const std::vector<std::vector<int64_t>> &workloads, int64_t rotatedBytes,
                                       const MeasurementOptions &options)
    : target(target), use(use), workloads(workloads), options(options) {
  for (const std::vector<int64_t> &extents : workloads)
    data.emplace_back(use, extents, rotatedBytes, target.compilerOf(use.kernel).abi());
}

static constexpr llvm::StringRef symbol = "kernel";

std::optional<std::vector<KernelMeasurements::Result<KernelCode>>>
KernelMeasurements::compile(llvm::ArrayRef<ScheduleConfig> configs) {
  std::vector<Job> jobs;
  for (const ScheduleConfig &config : configs)
    jobs.push_back({[&config, this]() -> llvm::Expected<std::string> {
                      func::FuncOp kernel = use.kernel;
                      std::string words;
                      ScopedDiagnosticHandler handler(kernel.getContext(), [&](Diagnostic &diagnostic) {
                        words += (words.empty() ? "" : "; ") + diagnostic.str();
                        return success();
                      });
                      FailureOr<KernelObject> compiled = target.compilerOf(kernel).compile(kernel, symbol, &config);
                      if (failed(compiled))
                        return llvm::createStringError(llvm::inconvertibleErrorCode(), "%s", words.c_str());
                      return fmt::format("{}\n{}", compiled->scratchBytes, compiled->object);
                    },
                    {}});
  auto results = runWhile(jobs, options.compileWorkers, {options.limits.compileSeconds, options.limits.compileBytes},
                          options.goesOn);
  if (!results)
    return std::nullopt;
  std::vector<Result<KernelCode>> codes;
  for (const JobResult &result : *results) {
    KernelCode code{"", symbol.str(), 0};
    auto [scratch, object] = llvm::StringRef(result.bytes).split('\n');
    if (result.outcome != JobOutcome::Done || scratch.getAsInteger(10, code.scratchBytes)) {
      codes.push_back(toFailure(result, Outcome::Failed));
      continue;
    }
    code.object = object.str();
    codes.push_back(std::move(code));
  }
  return codes;
}

std::optional<KernelMeasurements::Result<std::string>> KernelMeasurements::check(const KernelCode &code) {
  static constexpr llvm::StringRef wrong = "wrong ";
  Job job{[&]() -> llvm::Expected<std::string> {
            auto session = Session::open(target.info(), options.compare.threads, options.runner);
            if (!session)
              return session.takeError();
            auto result = compareWithInterpreter(**session, use, code, workloads, target.compilerOf(use.kernel).abi());
            if (!result)
              return result.takeError();
            return result->wrong.empty() ? result->unchecked : wrong.str() + result->wrong;
          },
          options.cpus};
  // GPU drivers reserve address space for the memory of all GPUs, and emulators for that of their programs.
  const bool isHere = target.info().memorySpace == KILN_MEMORY_HOST && options.runner.script.empty();
  const uint64_t mostBytes = isHere ? options.limits.compileBytes : 0;
  auto results = runWhile(job, 1, {options.limits.measureSeconds, mostBytes}, options.goesOn);
  if (!results)
    return std::nullopt;
  const JobResult &result = results->front();
  if (result.outcome == JobOutcome::TimedOut) // measuring will show whether the kernel hangs
    return "the interpreter " + result.error;
  if (result.outcome != JobOutcome::Done)
    return toFailure(result, Outcome::Crashed);
  llvm::StringRef words = result.bytes;
  if (words.consume_front(wrong))
    return FailedMeasurement{Outcome::Wrong, words.str()};
  return words.str();
}

std::optional<KernelMeasurements::Result<std::vector<Comparison>>>
KernelMeasurements::measure(const KernelCode &base, const KernelCode &candidate, bool isFinal) {
  CompareOptions compare = options.compare;
  if (isFinal) {
    compare.stopsEarly = false;
    compare.seconds *= 2;
    compare.mostPairs = 2 * compare.mostPairs + 1;
  }
  Job job{[&]() -> llvm::Expected<std::string> {
            auto session = Session::open(target.info(), compare.threads, options.runner);
            if (!session)
              return session.takeError();
            auto result = compareKernels(**session, base, candidate, data, compare);
            if (!result)
              return result.takeError();
            return encode(*result);
          },
          options.cpus};
  auto results = runWhile(job, 1, {options.limits.measureSeconds, 0}, options.goesOn);
  if (!results)
    return std::nullopt;
  const JobResult &result = results->front();
  if (result.outcome != JobOutcome::Done)
    return toFailure(result, Outcome::Crashed);
  llvm::Expected<CompareResult> compared = decodeCompareResult(result.bytes);
  if (!compared)
    return FailedMeasurement{Outcome::Crashed, llvm::toString(compared.takeError())};
  if (!compared->wrong.empty())
    return FailedMeasurement{Outcome::Wrong, compared->wrong};
  return std::move(compared->workloads);
}

std::optional<std::vector<Rates>> KernelMeasurements::probe() {
  Job job{[&]() -> llvm::Expected<std::string> {
            auto session = Session::open(target.info(), options.compare.threads, options.runner);
            if (!session)
              return session.takeError();
            std::vector<int64_t> footprints;
            for (const KernelData &workload : data)
              footprints.push_back(workload.footprint());
            std::string bytes;
            for (const Rates &rates : (*session)->probe(target.machine(), footprints))
              bytes += fmt::format("{} {} {}\n", rates.operations, rates.bytesRead, rates.bytesCopied);
            return bytes;
          },
          options.cpus};
  auto results = runWhile(job, 1, {options.limits.measureSeconds, 0}, options.goesOn);
  if (!results)
    return std::nullopt;
  std::vector<Rates> rates(data.size());
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(results->front().bytes).split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (auto [line, rate] : llvm::zip(lines, rates)) {
    auto [operations, rest] = line.split(' ');
    auto [read, copied] = rest.split(' ');
    if (operations.getAsDouble(rate.operations) || read.getAsDouble(rate.bytesRead) ||
        copied.getAsDouble(rate.bytesCopied))
      rate = {};
  }
  return rates;
}

} // namespace kiln
