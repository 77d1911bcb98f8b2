// SPDX-License-Identifier: Apache-2.0
//
// kiln_fuzz: tests random models, and prints reduced specs of those that fail. Exits with 0 if all models passed.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <fmt/format.h>
#include <optional>
#include <random>
#include <thread>
#include <unistd.h>

#include "../seed.h"
#include "Campaign.h"
#include "PrintSpec.h"
#include "compiler/transforms/StoreWeights.h"
#include "targets/registry.h"
#include "tests/targets/RunnableTargets.h"

using namespace kiln::fuzz;

namespace {

std::string describe(const Summary &summary) {
  std::string text;
  for (auto [kind, count] : summary.kinds)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, toString(kind));
  return text;
}

double percent(std::int64_t part, std::int64_t whole) { return whole ? 100.0 * double(part) / double(whole) : 0; }

/// The options of the command line.
struct Command {
  CampaignOptions options;
  std::optional<std::uint64_t> seed;
  std::string floats;
  bool showsSpec = false, isHere = false;
};

/// Returns an empty string, or the error message.
std::string isStorage(const std::string &text) {
  std::string error;
  kiln::parseStorageChoices(text, error);
  return error;
}

void addOptions(CLI::App &app, Command &command) {
  CampaignOptions &options = command.options;
  app.add_option("--graphs", options.count, "number of models")->capture_default_str();
  app.add_option("--seed", command.seed, "seed of the first model; the others follow; KILN_SEED sets it, too")
      ->envname("KILN_SEED");
  app.add_option("--target", options.targets,
                 "instruction sets, used in turn; default: all of this CPU except v4-vnni. cuda: the driver in "
                 "KILN_CUDA_DRIVER, otherwise an interpreter of PTX")
      ->check(CLI::IsMember(kiln::targetNames()));
  app.add_option("--emulator", options.trial.emulator,
                 "for targets of other CPUs: a script that links and runs programs, as tests/cross writes them")
      ->check(CLI::ExistingFile);
  app.add_option("-j,--jobs", options.jobs, "number of models that are tested at a time; 0: the number of CPUs")
      ->capture_default_str();
  app.add_option("--nodes", options.models.nodes, "maximum number of nodes of most models")->capture_default_str();
  app.add_option(
         "--weights", options.trial.weights,
         "storage formats of weights, such as mxfp4 or \"int8 except *w1=f16\"; default: random ones for one model in "
         "ten")
      ->check(isStorage);
  app.add_option("--float-type", command.floats,
                 "element type of floats: f32, f16 or bf16; default: 16-bit floats for one model in ten")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}));
  app.add_option(
         "--activations",
         [&](const CLI::results_t &texts) {
           std::string error;
           command.options.trial.int8Rows = kiln::parseActivations(texts.front(), error).value_or(false);
           return error.empty();
         },
         "int8: int8 weights are multiplied by rows that are quantised to int8; random if --weights is")
      ->type_name("TEXT");
  app.add_option("--schedules", options.trial.schedules,
                 "number of times that each model is compiled with random schedules")
      ->capture_default_str();
  app.add_flag("--batch-invariant", options.trial.isBatchInvariant,
               "batch-invariant kernels: all schedules must give the same bits");
  app.add_flag(
      "--batched", options.trial.isBatched,
      "also call entries for several sequences, where they can be batched; compare with calls for each sequence");
  app.add_option("--ranks", options.trial.ranks.ranks,
                 "number of tensor-parallel ranks (threads); models are generated until one can be split")
      ->check(CLI::Range(1, 64));
  app.add_option("--stages", options.trial.ranks.stages,
                 "number of pipeline stages, each with a share of the one stack; likewise")
      ->check(CLI::Range(1, 8));
  app.add_flag("--sequence-parallel", options.trial.ranks.rows,
               "sequence parallelism: ranks also share the rows between split layers");
  app.add_option("--reduction-parts", options.trial.ranks.reductionParts,
                 "number of parts of sums over ranks: 1, 2 .. --ranks ranks must give the same bits");
  app.add_flag("--check-memory", options.trial.checksMemory, "also check the memory accesses of each kernel");
  app.add_flag("--special", options.models.specialValues, "NaN and infinities among constants and inputs");
  app.add_flag("!--no-reduce", options.reduces, "show failures as they are");
  app.add_option("--folder", options.folder, "folder for the specs of failures");
  app.add_option("--seconds", options.secondsLimit, "time limit of one model in seconds")->capture_default_str();
  app.add_flag("--show", command.showsSpec, "print the spec of the first model, then exit");
  app.add_flag("--here", command.isHere, "test the first model in this process, for a debugger");
}

void complete(Command &command) {
  CampaignOptions &options = command.options;
  if (options.targets.empty())
    options.targets = kiln::testing::runnableTargets();
  if (options.jobs == 0)
    options.jobs = std::max(1u, std::thread::hardware_concurrency());
  const kiln::RankChoices &ranks = options.trial.ranks;
  options.trial.isBatchInvariant |= ranks.reductionParts > 0;
  options.models.splits = ranks.isSplit();
  options.models.rowsOf = ranks.rows ? static_cast<int>(ranks.ranks) : 1;
  options.models.hasOneStack = ranks.stages > 1;
  // Each rank quantises its part with its own maxima, so the interpreter cannot know the quantised values.
  options.drawsWeights = options.trial.weights.empty() && !options.trial.isSplit();
  // Sums in parts round each 16-bit part, and a stage may round a value that one process keeps in f32.
  options.drawsFloats = command.floats.empty() && ranks.reductionParts == 0 && ranks.stages == 1;
  if (command.floats == "f16" || command.floats == "bf16")
    options.models.element = command.floats == "f16" ? kiln::ElementType::f16 : kiln::ElementType::bf16;
  options.firstSeed = command.seed ? *command.seed : std::uint64_t(kiln::testing::testSeed()) << 16;
}

/// Returns an empty string, or why the targets do not support the options.
std::string problemOf(const CampaignOptions &options) {
  if (options.trial.isSplit() && !options.trial.weights.empty())
    return "--weights: several processes; expected one, for which the values of quantised weights are known";
  if (options.trial.isSplit() && llvm::is_contained(options.targets, "cuda"))
    return "--target: no CPU with several ranks or stages; expected CPUs, got cuda";
  const bool isEmulated = !options.trial.emulator.empty();
  if (isEmulated && (options.trial.isSplit() || options.trial.isBatched))
    return "--emulator: several processes or sequences; expected one of each";
  std::vector<std::string> here = kiln::testing::runnableLevels();
  here.push_back("cuda");
  for (const std::string &name : options.targets)
    if (isEmulated && llvm::is_contained(here, name))
      return fmt::format("--emulator: target needs no emulator; expected other CPUs, got {}", name);
    else if (!isEmulated && !llvm::is_contained(here, name))
      return fmt::format("--target {}: not supported here; expected --emulator, or one of {}", name,
                         llvm::join(here, ", "));
    else if (const kiln::Target *target = kiln::findTarget(name);
             !options.trial.weights.empty() && target && !target->info().hasStoredWeights)
      return fmt::format("--weights: target has no quantised weights; expected another, got {}", name);
    else if ((options.trial.isBatchInvariant || options.trial.isBatched) && target && !target->info().hasOrder)
      return fmt::format("{}: target has no batch-invariant kernels; expected another, got {}",
                         options.trial.isBatchInvariant ? "--batch-invariant" : "--batched", name);
  return "";
}

int tryHere(const CampaignOptions &options) {
  const std::uint64_t first = options.firstSeed;
  const RandomModel model = modelOf(first, options);
  const TrialOptions trial = trialOf(model, first, options);
  const Verdict verdict = tryModel(model, targetOf(first, options), first, trial);
  fmt::print("{}: {}\n", toString(verdict.kind), verdict.words);
  return verdict.kind != Verdict::Kind::Right;
}

/// Prints the progress: in one line on a terminal, otherwise every 500 models.
class Progress {
public:
  Progress(std::int64_t count, bool isTerminal) : count(count), isTerminal(isTerminal) {}

  void operator()(const Summary &summary) {
    std::int64_t done = 0;
    for (auto [kind, number] : summary.kinds)
      done += number;
    if (!isTerminal && done - shown < 500 && done < count)
      return;
    shown = done;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    fmt::print("{}{}/{} in {:.0f} s: {}{}", isTerminal ? "\r\033[K" : "", done, count, seconds, describe(summary),
               isTerminal ? "" : "\n");
    std::fflush(stdout);
  }

private:
  std::int64_t count, shown = 0;
  bool isTerminal;
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
};

int tryAll(const CampaignOptions &options) {
  const bool isTerminal = isatty(STDOUT_FILENO);
  Progress progress(options.count, isTerminal);
  auto onFailure = [&](const Failure &failure) {
    fmt::print("{}--- seed {}, {}, {}: {}\n{}\n", isTerminal ? "\r\033[K" : "", failure.seed, failure.target,
               toString(failure.verdict.kind), failure.verdict.words, failure.spec);
    std::fflush(stdout);
  };
  const Summary summary = runCampaign(options, progress, onFailure);
  fmt::print("{}{} models: {}; {} elements compared, {:.1f} % of them with a tight bound, {:.1f} % not determined; "
             "{} random schedules{}\n",
             isTerminal ? "\n" : "", options.count, describe(summary), summary.elements,
             percent(summary.tight, summary.elements), percent(summary.undetermined, summary.elements),
             summary.schedules,
             options.trial.isBatched   ? fmt::format(", {} calls for several sequences", summary.batches)
             : options.trial.isSplit() ? fmt::format(", {} calls of several processes", summary.together)
                                       : "");
  const auto passed = summary.kinds.find(Verdict::Kind::PassedOver);
  const std::int64_t passedOver = passed == summary.kinds.end() ? 0 : passed->second;
  if (passedOver == options.count || (options.trial.isSplit() && passedOver * 10 > options.count)) {
    fmt::print(stderr, "too many models were passed over; expected at most {}, got {} of {}\n",
               options.trial.isSplit() ? options.count / 10 : options.count - 1, passedOver, options.count);
    return 1;
  }
  return summary.failures.empty() ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
  Command command;
  CLI::App app("Random models, compiled, run and compared with the interpreter");
  addOptions(app, command);
  CLI11_PARSE(app, argc, argv);
  complete(command);
  const CampaignOptions &options = command.options;
  if (const std::string problem = problemOf(options); !problem.empty()) {
    fmt::print(stderr, "{}\n", problem);
    return 1;
  }
  if (command.showsSpec) {
    const RandomModel model = modelOf(options.firstSeed, options);
    fmt::print("{}", describe(model, trialOf(model, options.firstSeed, options)));
    return 0;
  }
  fmt::print("seed {}\n", options.firstSeed);
  return command.isHere ? tryHere(options) : tryAll(options);
}
