// SPDX-License-Identifier: Apache-2.0
#include "compiler/tools/Options.h"

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
    return fmt::format("an extent must be given as NAME=VALUE, got \"{}\"", text);
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
                                     "file of measurements that schedules are chosen by; NAME.tuning next to the spec "
                                     "if it is there and none is given");
  app.add_flag("--no-tuning", isUntuned, "analytic defaults, also where there is such a file")->excludes(file);
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
                 "count measurements of this machine only; any part of its name in the file that no other has");
  app.add_option("--threads", options.threads,
                 "threads that the library will be called with; 0: what is best on the average of those measured")
      ->check(CLI::Range(0, 1024));
}

void addLoweringOptions(CLI::App &app, LoweringOptions &options) {
  app.add_flag("--norm-moments", options.normMoments,
               "norms take mean and variance from the contractions before them; to be tuned and built alike");
  app.add_flag("--tf32", options.tf32,
               "GPUs may round factors of f32 to tf32, for tensor cores; to be tuned and built alike");
  app.add_flag("--ordered", options.ordered,
               "each row's results are the same to the bit in every call; to be tuned and built alike");
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
         "how matrices of weights are stored: f32, f16, bf16, int8 or int4, as \"int8 except PATTERN=TYPE ...\"; to be "
         "tuned and built alike")
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
         "what linear multiplies weights of int8 and int4 by: f32, or rows rounded to int8; to be tuned and built "
         "alike")
      ->type_name("TEXT");
  app.add_option("--ranks", options.ranks.ranks,
                 "processes that call entries together, each with a part of the weights; to be tuned and built alike")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option(
         "--stages", options.ranks.stages,
         "processes of a pipeline, each with its share of the layers, those before the last one with one more if there "
         "are some left; to be tuned and built alike")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--replicas", options.ranks.replicas,
                 "models that train together, each with its own inputs: gradients are means over all of them; to be "
                 "tuned and built alike")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_option("--sum-parts", options.ranks.sumParts,
                 "with --ordered: libraries for each number of ranks that divides this give the same bits")
      ->check(CLI::Range(0, 1024));
  app.add_flag("--sequence-parallel", options.ranks.rows,
               "ranks share out the rows of norms and residuals, too; to be tuned and built alike");
  app.add_flag("--shard-optimizer", options.ranks.sharesStates,
               "replicas share out what optimisers keep, and the updates; to be tuned and built alike");
}

std::string flagsOf(const LoweringOptions &options) {
  return std::string(options.normMoments ? " --norm-moments" : "") + (options.tf32 ? " --tf32" : "") +
         (options.ordered ? " --ordered" : "") +
         (options.weights.isPlain() ? "" : fmt::format(" --weights \"{}\"", toString(options.weights))) +
         (options.weights.quantizesRows ? " --activations int8" : "") +
         (options.ranks.ranks > 1 ? fmt::format(" --ranks {}", options.ranks.ranks) : "") +
         (options.ranks.stages > 1 ? fmt::format(" --stages {}", options.ranks.stages) : "") +
         (options.ranks.replicas > 1 ? fmt::format(" --replicas {}", options.ranks.replicas) : "") +
         (options.ranks.sumParts > 0 ? fmt::format(" --sum-parts {}", options.ranks.sumParts) : "") +
         (options.ranks.rows ? " --sequence-parallel" : "") + (options.ranks.sharesStates ? " --shard-optimizer" : "");
}

int fail(llvm::Error error) {
  fmt::print(stderr, "error: {}\n", llvm::toString(std::move(error)));
  return 1;
}

} // namespace kiln
