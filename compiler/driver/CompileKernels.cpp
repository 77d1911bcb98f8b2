// SPDX-License-Identifier: Apache-2.0
//
// 1. Kernels are compiled under a symbol that no model uses, and their objects are renamed afterwards: so a kernel's
// object depends only on its content and can serve every model. Equal kernels are compiled once.
// 2. Kernels that are not in the cache become jobs, which return the object and its facts as one text.
// 3. The diagnostics that a job printed are forwarded in the order of the kernels.
#include "compiler/driver/CompileKernels.h"

#include "compiler/jobs/Jobs.h"
#include "compiler/kernel/KernelKey.h"
#include "compiler/object/Object.h"

#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/StringMap.h"
#include <fmt/format.h>

using namespace mlir;

namespace kiln {

static constexpr StringLiteral neutralSymbol = "kiln_any_kernel";

//===--- A kernel's key and its object as text
//---------------------------------------------------------------------===//

static std::string keyOfObject(const KernelRequest &kernel, bool isChecked) {
  return fmt::format("{}\n{}\n{}\n{}{}", compilerFingerprint(),
                     kernel.target->name().str() + " " + kernel.target->info().hostTriple,
                     kernel.config ? toString(*kernel.config) : "default", keyOf(kernel.function).content,
                     isChecked ? "\nchecked" : "");
}

static std::string print(const KernelObject &kernel) {
  return fmt::format("{}\n{}\n{}\n{}\n{:d}\n", kernel.strategy, toString(kernel.schedule), kernel.scratchBytes,
                     kernel.taskBytes, kernel.isFallback) +
         kernel.object;
}

static std::optional<KernelObject> parse(StringRef text) {
  KernelObject kernel;
  auto [strategy, afterStrategy] = text.split('\n');
  auto [schedule, afterSchedule] = afterStrategy.split('\n');
  auto [scratch, afterScratch] = afterSchedule.split('\n');
  auto [task, afterTask] = afterScratch.split('\n');
  auto [isFallback, object] = afterTask.split('\n');
  kernel.strategy = strategy.str();
  SmallVector<StringRef> parameters;
  schedule.split(parameters, ' ', -1, /*KeepEmpty=*/false);
  for (StringRef parameter : parameters) {
    auto [key, value] = parameter.split('=');
    if (value.getAsInteger(10, kernel.schedule[key.str()]))
      return std::nullopt;
  }
  if (scratch.getAsInteger(10, kernel.scratchBytes) || task.getAsInteger(10, kernel.taskBytes))
    return std::nullopt;
  kernel.isFallback = isFallback == "1";
  kernel.object = object.str();
  return kernel;
}

//===--- Jobs
//------------------------------------------------------------------------------------------------------===//

static void report(const KernelRequest &kernel, const JobResult &result, const KernelOptions &options,
                   raw_ostream &errors) {
  errors << result.output;
  if (!result.output.empty() && result.output.back() != '\n')
    errors << '\n';
  switch (result.outcome) {
  case JobOutcome::Done:
    break;
  case JobOutcome::Failed: // a job that failed without a message has printed a diagnostic
    if (!result.error.empty())
      errors << fmt::format("error: kernel \"{}\" cannot be compiled: {}\n", kernel.symbol, result.error);
    break;
  case JobOutcome::Crashed:
    errors << fmt::format("error: the code generator crashed at kernel \"{}\": {}\n", kernel.symbol, result.error);
    break;
  case JobOutcome::TimedOut:
    errors << fmt::format("error: kernel \"{}\": compilation took too long; expected at most {} seconds\n",
                          kernel.symbol, options.secondsLimit);
    break;
  }
}

/// Converts the result of the function that runs in a job. A failure has been reported as a diagnostic, on the job's
/// standard error.
static llvm::Expected<std::string> toExpected(FailureOr<std::string> bytes) {
  if (failed(bytes))
    return llvm::createStringError("");
  return std::move(*bytes);
}

namespace {

/// Reports progress after each kernel.
struct Progress {
  const KernelOptions &options;
  size_t total, done = 0;

  void operator()(const KernelRequest &kernel, double seconds, bool isCached) {
    ++done;
    if (options.progress)
      options.progress({done, total, kernel, seconds, isCached});
  }
};

} // namespace

/// The function that a job runs.
using CompileKernel = function_ref<FailureOr<std::string>(const KernelRequest &, const KernelCompiler &)>;

/// Retries the kernels at which the code generator crashed, each with its compiler's fallback, if there is one.
static void runFallbacks(ArrayRef<const KernelRequest *> kernels, const KernelOptions &options, size_t workers,
                         std::vector<JobResult> &results, CompileKernel compile) {
  std::vector<Job> jobs;
  std::vector<size_t> indices;
  for (auto [index, kernel] : llvm::enumerate(kernels)) {
    const KernelCompiler *fallback = kernel->target->compilerOf(kernel->function).fallback();
    if (results[index].outcome != JobOutcome::Crashed || !fallback)
      continue;
    indices.push_back(index);
    jobs.push_back({[=, kernel = kernel] { return toExpected(compile(*kernel, *fallback)); }, {}});
  }
  std::vector<JobResult> others = runJobs(jobs, workers, {.seconds = options.secondsLimit}, nullptr);
  for (auto [index, other] : llvm::zip_equal(indices, others))
    if (other.outcome == JobOutcome::Done)
      results[index] = std::move(other);
}

/// Runs `compile` for each of `kernels` and returns the results. On failure it returns after all have run and were
/// reported.
static FailureOr<std::vector<std::string>> runKernelJobs(ArrayRef<const KernelRequest *> kernels,
                                                         const KernelOptions &options, raw_ostream &errors,
                                                         Progress &progress, CompileKernel compile) {
  std::vector<Job> jobs;
  for (const KernelRequest *kernel : kernels)
    jobs.push_back({[=] { return toExpected(compile(*kernel, kernel->target->compilerOf(kernel->function))); }, {}});
  const size_t workers = options.workers ? options.workers : availableCpus().size();
  auto onFinished = [&](size_t index, const JobResult &job) {
    progress(*kernels[index], job.seconds, /*isCached=*/false);
  };
  std::vector<JobResult> results;
  if (options.isolates) {
    results = runJobs(jobs, workers, {.seconds = options.secondsLimit}, onFinished);
    runFallbacks(kernels, options, workers, results, compile);
  }
  for (size_t index = 0; !options.isolates && index < jobs.size(); ++index) {
    results.push_back(runHere(jobs[index]));
    onFinished(index, results.back());
  }
  bool isComplete = true;
  std::vector<std::string> texts;
  for (auto [kernel, result] : llvm::zip_equal(kernels, results)) {
    report(*kernel, result, options, errors);
    isComplete &= result.outcome == JobOutcome::Done;
    texts.push_back(std::move(result.bytes));
  }
  if (!isComplete)
    return failure();
  return texts;
}

FailureOr<std::vector<KernelObject>> compileKernels(ArrayRef<KernelRequest> kernels, const KernelOptions &options,
                                                    raw_ostream &errors) {
  std::vector<std::string> keys;
  std::vector<size_t> distinct; // the first kernel of each key
  llvm::StringMap<std::optional<KernelObject>> objects;
  for (const KernelRequest &kernel : kernels) {
    keys.push_back(keyOfObject(kernel, options.checksMemory));
    if (objects.try_emplace(keys.back()).second)
      distinct.push_back(keys.size() - 1);
  }

  Progress progress{options, distinct.size()};
  std::vector<size_t> missing;
  for (size_t index : distinct) {
    std::optional<std::string> text = options.cache ? options.cache->find(keys[index]) : std::nullopt;
    if (text && (objects[keys[index]] = parse(*text)))
      progress(kernels[index], 0, /*isCached=*/true);
    else
      missing.push_back(index);
  }

  auto requests = llvm::map_to_vector(missing, [&](size_t index) { return &kernels[index]; });
  auto compile = [&](const KernelRequest &kernel, const KernelCompiler &compiler) -> FailureOr<std::string> {
    const ScheduleConfig *config = kernel.config ? &*kernel.config : nullptr;
    FailureOr<KernelObject> object = options.checksMemory
                                         ? compiler.compileChecked(kernel.function, neutralSymbol, config)
                                         : compiler.compile(kernel.function, neutralSymbol, config);
    if (failed(object))
      return failure();
    object->isFallback = &compiler != &kernel.target->compilerOf(kernel.function);
    return print(*object);
  };
  auto texts = runKernelJobs(requests, options, errors, progress, compile);
  if (failed(texts))
    return failure();
  for (auto [index, text] : llvm::zip_equal(missing, *texts)) {
    objects[keys[index]] = parse(text);
    if (options.cache)
      options.cache->store(keys[index], text);
  }
  if (options.cache)
    options.cache->trim();

  std::vector<KernelObject> result;
  for (auto [kernel, key] : llvm::zip_equal(kernels, keys)) {
    result.push_back(*objects[key]);
    llvm::Expected<std::string> renamed = renameKernel(result.back().object, neutralSymbol, kernel.symbol);
    if (!renamed) {
      errors << fmt::format("error: kernel \"{}\": {}\n", kernel.symbol, llvm::toString(renamed.takeError()));
      return failure();
    }
    result.back().object = std::move(*renamed);
  }
  return result;
}

FailureOr<std::vector<std::string>> printKernels(ArrayRef<KernelRequest> kernels, KernelText form,
                                                 const KernelOptions &options, raw_ostream &errors) {
  Progress progress{options, kernels.size()};
  auto requests = llvm::map_to_vector(kernels, [](const KernelRequest &kernel) { return &kernel; });
  return runKernelJobs(
      requests, options, errors, progress, [=](const KernelRequest &kernel, const KernelCompiler &compiler) {
        return compiler.print(kernel.function, kernel.symbol, form, kernel.config ? &*kernel.config : nullptr);
      });
}

} // namespace kiln
