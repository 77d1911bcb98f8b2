// SPDX-License-Identifier: Apache-2.0
#include "Campaign.h"

#include "CompiledModel.h"
#include "PrintSpec.h"
#include "Random.h"
#include "Reduce.h"
#include "StoredWeights.h"

#include "compiler/jobs/Jobs.h"
#include "compiler/verify/VerifyPasses.h"
#include "targets/registry.h"
#include "llvm/Support/JSON.h"
#include <filesystem>
#include <fmt/format.h>
#include <fstream>

namespace kiln::fuzz {

namespace {

llvm::json::Value toJson(const Verdict &verdict) {
  return llvm::json::Object{{"kind", static_cast<int>(verdict.kind)},
                            {"words", llvm::json::fixUTF8(verdict.words)},
                            {"elements", verdict.elements},
                            {"tight", verdict.tight},
                            {"undetermined", verdict.undetermined},
                            {"schedules", verdict.schedules},
                            {"batches", verdict.batches},
                            {"together", verdict.together}};
}

Verdict fromJson(const llvm::json::Object &object) {
  Verdict verdict;
  verdict.kind = static_cast<Verdict::Kind>(object.getInteger("kind").value_or(0));
  verdict.words = object.getString("words").value_or("").str();
  verdict.elements = object.getInteger("elements").value_or(0);
  verdict.tight = object.getInteger("tight").value_or(0);
  verdict.undetermined = object.getInteger("undetermined").value_or(0);
  verdict.schedules = object.getInteger("schedules").value_or(0);
  verdict.batches = object.getInteger("batches").value_or(0);
  verdict.together = object.getInteger("together").value_or(0);
  return verdict;
}

Verdict tryCaught(const RandomModel &model, std::uint64_t seed, const CampaignOptions &options,
                  const TrialOptions &trial) {
  try {
    return tryModel(model, targetOf(seed, options), seed, trial);
  } catch (const std::exception &error) {
    return {Verdict::Kind::Broken, error.what()};
  }
}

/// Parses the verdicts that a job returned; returns nothing if the job died.
std::optional<std::vector<Verdict>> parse(const JobResult &result) {
  if (result.outcome != JobOutcome::Done)
    return std::nullopt;
  auto list = llvm::json::parse(result.bytes);
  if (!list) {
    llvm::consumeError(list.takeError());
    return std::nullopt;
  }
  std::vector<Verdict> verdicts;
  for (const llvm::json::Value &entry : *list->getAsArray())
    verdicts.push_back(fromJson(*entry.getAsObject()));
  return verdicts;
}

class Campaign {
public:
  Campaign(const CampaignOptions &options, const std::function<void(const Summary &)> &progress,
           const std::function<void(const Failure &)> &onFailure)
      : options(options), progress(progress), onFailure(onFailure) {}

  Summary run() {
    constexpr std::int64_t perJob = 20;
    warmUp();
    std::vector<std::int64_t> starts;
    for (std::int64_t at = 0; at < options.count; at += perJob)
      starts.push_back(at);
    JobGroup group({options.secondsLimit * (1 + options.trial.schedules) * perJob, 0});
    size_t next = 0;
    while (next < starts.size() || group.size() > 0) {
      while (next < starts.size() && group.size() < std::max(1u, options.jobs)) {
        const std::int64_t begin = starts[next], end = std::min(begin + perJob, options.count);
        group.start({[this, begin, end]() -> llvm::Expected<std::string> {
                       llvm::json::Array verdicts;
                       for (std::int64_t i = begin; i < end; ++i)
                         verdicts.push_back(toJson(tryOne(options.firstSeed + static_cast<std::uint64_t>(i))));
                       return llvm::formatv("{0}", llvm::json::Value(std::move(verdicts))).str();
                     },
                     {}},
                    next);
        ++next;
      }
      auto ended = group.wait();
      if (!ended)
        break;
      const std::int64_t begin = starts[ended->first], end = std::min(begin + perJob, options.count);
      if (auto verdicts = parse(ended->second); verdicts && static_cast<std::int64_t>(verdicts->size()) == end - begin)
        for (std::int64_t i = begin; i < end; ++i)
          note(options.firstSeed + static_cast<std::uint64_t>(i),
               std::move((*verdicts)[static_cast<size_t>(i - begin)]));
      else
        for (std::int64_t i = begin; i < end; ++i) {
          const std::uint64_t seed = options.firstSeed + static_cast<std::uint64_t>(i);
          const RandomModel model = modelOf(seed, options);
          note(seed, tryAlone(model, seed, options, trialOf(model, seed, options)));
        }
      progress(summary);
    }
    return std::move(summary);
  }

private:
  /// Compiles a model, so that the jobs, which are forked from this process, inherit an initialised code generator.
  void warmUp() {
    for (const std::string &target : options.targets)
      llvm::consumeError(
          CompiledModel::compile(modelOf(1, options).graph, target, {.emulator = options.trial.emulator}).takeError());
  }

  Verdict tryOne(std::uint64_t seed) {
    const RandomModel model = modelOf(seed, options);
    return tryCaught(model, seed, options, trialOf(model, seed, options));
  }

  void note(std::uint64_t seed, Verdict verdict) {
    ++summary.kinds[verdict.kind];
    summary.elements += verdict.elements;
    summary.tight += verdict.tight;
    summary.undetermined += verdict.undetermined;
    summary.schedules += verdict.schedules;
    summary.batches += verdict.batches;
    summary.together += verdict.together;
    if (verdict.kind == Verdict::Kind::Right || verdict.kind == Verdict::Kind::PassedOver)
      return;
    Failure failure{seed, targetOf(seed, options), std::move(verdict), ""};
    RandomModel model = modelOf(seed, options);
    const TrialOptions trial = trialOf(model, seed, options); // for the reduced models, too
    if (options.reduces && static_cast<int>(summary.failures.size()) < options.mostReduced)
      model = reduce(model, [&](const RandomModel &candidate) {
        const Verdict found = tryAlone(candidate, seed, options, trial);
        if (found.kind != failure.verdict.kind)
          return false;
        failure.verdict = found;
        return true;
      });
    failure.spec = describe(model, trial);
    if (std::string pass = findPass(model, failure.target, seed, trial); !pass.empty())
      failure.verdict.words += "\n" + pass;
    if (!options.folder.empty()) {
      std::filesystem::create_directories(options.folder);
      std::string words = failure.verdict.words;
      for (size_t at = 0; (at = words.find('\n', at)) != std::string::npos; at += 4)
        words.replace(at, 1, "\n// ");
      std::ofstream(fmt::format("{}/{}.cpp", options.folder, seed)) << fmt::format(
          "// seed {}, {}, {}\n// {}\n{}", seed, failure.target, toString(failure.verdict.kind), words, failure.spec);
    }
    onFailure(failure);
    summary.failures.push_back(std::move(failure));
  }

  /// Returns the pass that changes a result of the model, or an empty string if no pass does or if the model is split
  /// among processes.
  std::string findPass(const RandomModel &model, const std::string &target, std::uint64_t seed,
                       const TrialOptions &trial) {
    if (trial.isSplit())
      return "";
    VerifyPassesOptions verified;
    std::string error;
    const std::string weights = weightsFor(model.graph, trial.weights);
    verified.weights = parseStorageChoices(weights, error).value_or(StorageChoices());
    verified.weights.quantizesRows = trial.int8Rows && multipliesInt8(model.graph, weights);
    const JobResult result = runJob({[&]() -> llvm::Expected<std::string> {
                                       return verifyPasses(model.graph, *findTarget(target), seed, verified);
                                     },
                                     {}},
                                    {options.secondsLimit, 0});
    return result.outcome == JobOutcome::Done ? result.bytes : "";
  }

  const CampaignOptions &options;
  const std::function<void(const Summary &)> &progress;
  const std::function<void(const Failure &)> &onFailure;
  Summary summary;
};

} // namespace

std::string targetOf(std::uint64_t seed, const CampaignOptions &options) {
  return options.targets[seed % options.targets.size()];
}

/// Whether the model can be split among processes, if the options require that.
static bool suits(const RandomModel &model, const CampaignOptions &options) {
  return !options.trial.isSplit() || canBeSplit(triedGraph(model, options.trial), options.trial.ranks);
}

RandomModel modelOf(std::uint64_t seed, const CampaignOptions &options) {
  Options models = options.models;
  if (Random random(seed ^ 0xf10a75); options.drawsFloats && random.percent(10))
    models.element = random.percent(50) ? ElementType::f16 : ElementType::bf16;
  models.hasPatterns = !options.trial.isSplit();
  RandomModel model = randomModel(seed, models);
  constexpr std::uint64_t mostDraws = 200;
  for (std::uint64_t draw = 1; draw < mostDraws && !suits(model, options); ++draw)
    model = randomModel(seed ^ (draw << 40), models);
  return model;
}

TrialOptions trialOf(const RandomModel &model, std::uint64_t seed, const CampaignOptions &options) {
  TrialOptions trial = options.trial;
  const Target *target = findTarget(targetOf(seed, options));
  if (options.drawsWeights && target && target->info().hasStoredWeights)
    trial.weights = drawWeights(model.graph, seed);
  if (options.drawsWeights && !trial.weights.empty())
    trial.int8Rows = drawInt8Rows(seed);
  return trial;
}

std::string describe(const RandomModel &model, const TrialOptions &trial) {
  const std::string weights = weightsFor(model.graph, trial.weights);
  const bool hasInt8Rows = trial.int8Rows && multipliesInt8(model.graph, weights);
  return (weights.empty() ? "" : "// --weights \"" + weights + "\"" + (hasInt8Rows ? " --activations int8\n" : "\n")) +
         printSpec(triedGraph(model, trial));
}

static Verdict tryInAJob(const RandomModel &model, std::uint64_t seed, const CampaignOptions &options,
                         const TrialOptions &trial) {
  JobResult result = runJob({[&]() -> llvm::Expected<std::string> {
                               llvm::json::Array verdicts{toJson(tryCaught(model, seed, options, trial))};
                               return llvm::formatv("{0}", llvm::json::Value(std::move(verdicts))).str();
                             },
                             {}},
                            {options.secondsLimit * (1 + trial.schedules), 0});
  if (auto verdicts = parse(result); verdicts && verdicts->size() == 1)
    return verdicts->front();
  Verdict verdict;
  verdict.kind = result.outcome == JobOutcome::TimedOut ? Verdict::Kind::Hung : Verdict::Kind::Crashed;
  verdict.words = result.error + (result.output.empty() ? "" : "\n" + result.output);
  return verdict;
}

Verdict tryAlone(const RandomModel &model, std::uint64_t seed, const CampaignOptions &options,
                 const TrialOptions &trial) {
  Verdict verdict = tryInAJob(model, seed, options, trial);
  if (verdict.kind != Verdict::Kind::Crashed)
    return verdict;
  // If the code generator crashed, tries again with each kernel compiled in a separate process, where a crash is
  // recovered from by compiling the kernel differently.
  TrialOptions isolated = trial;
  isolated.isolatesKernels = true;
  return tryInAJob(model, seed, options, isolated);
}

Summary runCampaign(const CampaignOptions &options, const std::function<void(const Summary &)> &progress,
                    const std::function<void(const Failure &)> &onFailure) {
  return Campaign(options, progress, onFailure).run();
}

} // namespace kiln::fuzz
