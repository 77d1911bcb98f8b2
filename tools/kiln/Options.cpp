// SPDX-License-Identifier: Apache-2.0
#include "tools/kiln/Options.h"

#include "targets/registry.h"
#include "tools/kiln/CommandLine.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cstdlib>
#include <fmt/format.h>

namespace kiln {

std::string tuningFileOf(const std::string &name) {
  const char *folder = std::getenv("KILN_SPEC_FOLDER"); // set by `kiln` and kiln_add_library
  llvm::SmallString<128> path(folder ? folder : "");
  llvm::sys::path::append(path, name + ".tuning");
  return path.str().str();
}

std::string checkExtent(const std::string &text) {
  size_t at = text.find('=');
  int64_t value = 0;
  if (at == 0 || at == std::string::npos || llvm::StringRef(text).drop_front(at + 1).getAsInteger(10, value))
    return fmt::format("wrong form; expected NAME=VALUE, got \"{}\"", text);
  return "";
}

GivenExtents toExtents(const std::vector<std::string> &texts) {
  GivenExtents extents;
  for (const std::string &text : texts) {
    auto [name, value] = llvm::StringRef(text).split('=');
    int64_t number = 0;
    value.getAsInteger(10, number);
    extents[name.str()].push_back(number);
  }
  return extents;
}

void addTuningOptions(CLI::App &app, TuningOptions &options, bool &isUntuned) {
  CLI::Option *file = app.add_option("--tuning", options.file,
                                     "tuning file whose measurements determine the schedules; default: NAME.tuning "
                                     "next to the spec, if it exists");
  app.add_flag("--no-tuning", isUntuned, "use analytic default schedules, even if there is a tuning file")
      ->excludes(file);
}

void findTuningFile(TuningOptions &options, const std::string &name, bool isUntuned) {
  if (isUntuned || !options.file.empty())
    return;
  for (const std::string &file : {tuningFileOf(name), options.commandFile})
    if (options.file.empty() && llvm::sys::fs::is_regular_file(file))
      options.file = file;
}

void addChooseOptions(CLI::App &app, ChooseOptions &options) {
  app.add_option("--machine", options.machine,
                 "use only the measurements of this machine: any part of its name that is unique in the file");
  app.add_option(
         "--threads", options.threads,
         "threads that calls of the library will use; 0: schedules that are best on average over those measured")
      ->check(CLI::Range(0, 1024));
}

CLI::Validator knownTarget() {
  CLI::Validator known = oneOf(targetNames());
  if (findTarget("cuda"))
    return known;
  const auto check = [known](std::string &word) {
    return word == "cuda" ? std::string("\"cuda\": built without KILN_CUDA; expected a build with it") : known(word);
  };
  return CLI::Validator(check, known.get_description());
}

void addLoweringOptions(CLI::App &app, LoweringOptions &options) {
  app.add_flag(
      "--tf32", options.tf32,
      "GPUs may round f32 operands of contractions to tf32, for tensor cores; tune and compile with the same setting");
  app.add_flag(
      "--batch-invariant", options.batchInvariant,
      "batch-invariant kernels: each row's results are bitwise equal in every call; tune and compile with the same "
      "setting");
  app.add_option_function<std::string>(
         "--weights",
         [&](const std::string &text) {
           std::string error;
           std::optional<StorageChoices> choices = parseStorageChoices(text, error);
           if (!choices)
             throw CLI::ValidationError("--weights", error);
           choices->quantizesRows = options.weights.quantizesRows;
           options.weights = *choices;
         },
         fmt::format(
             "storage format of weight matrices: {}, as \"int8 except PATTERN=TYPE ...\"; tune and compile with "
             "the same setting",
             format_names.data()))
      ->type_name("TEXT");
  app.add_option_function<std::string>(
         "--activations",
         [&](const std::string &text) {
           std::string error;
           std::optional<bool> quantizesRows = parseActivations(text, error);
           if (!quantizesRows)
             throw CLI::ValidationError("--activations", error);
           options.weights.quantizesRows = *quantizesRows;
         },
         fmt::format("type of the activations that linear multiplies weights of {} by: f32, or int8 with a scale per "
                     "row; tune and compile with the same setting",
                     integer_format_names.data()))
      ->type_name("TEXT");
  app.add_option(
         "--ranks", options.ranks.ranks,
         "tensor parallelism: number of processes that call entries together, each with a part of the weights; tune "
         "and compile with the same setting")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option(
         "--stages", options.ranks.stages,
         "pipeline parallelism: number of stages, one process each, with equal shares of the layers; remaining layers "
         "go to the stages just before the last one; tune and compile with the same setting")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--replicas", options.ranks.replicas,
                 "data parallelism: number of models that train together on different inputs, with gradients averaged "
                 "over all of them; tune and compile with the same setting")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_option("--reduction-parts", options.ranks.reductionParts,
                 "with --batch-invariant: results are bitwise equal for every number of ranks that divides this number")
      ->check(CLI::Range(0, 1024));
  app.add_flag("--sequence-parallel", options.ranks.rows,
               "ranks also divide the rows of norms and residuals; tune and compile with the same setting");
  app.add_flag("--shard-optimizer", options.ranks.sharesStates,
               "replicas shard the optimiser state and the updates (ZeRO-1); tune and compile with the same setting");
}

void addModelOptions(CLI::App &app, CompileOptions &options) {
  app.add_option("--name", options.name, "name of the library and prefix of its symbols")->capture_default_str();
  app.add_option("--target", options.targets, "instruction sets in the archive, best first")
      ->delimiter(',')
      ->check(knownTarget())
      ->capture_default_str();
  addLoweringOptions(app, options.lowering);
}

std::string flagsOf(const LoweringOptions &options) {
  return std::string(options.tf32 ? " --tf32" : "") + (options.batchInvariant ? " --batch-invariant" : "") +
         (options.weights.isPlain() ? "" : fmt::format(" --weights \"{}\"", toString(options.weights))) +
         (options.weights.quantizesRows ? " --activations int8" : "") + flagsOf(options.ranks);
}

std::string mib(uint64_t bytes) { return fmt::format("{:.2f} MiB", static_cast<double>(bytes) / (1 << 20)); }

int fail(llvm::Error error) {
  fmt::print(stderr, "error: {}\n", llvm::toString(std::move(error)));
  return 1;
}

} // namespace kiln
