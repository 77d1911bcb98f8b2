// SPDX-License-Identifier: Apache-2.0
#include "tools/kiln/Tune.h"

#include "compiler/driver/Untuned.h"
#include "compiler/pipeline/RankChoices.h"
#include "targets/registry.h"
#include "tools/kiln/CommandLine.h"
#include "tools/kiln/Options.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <unistd.h>

namespace kiln {

// Options.

static void addMergeOptions(CLI::App &app, std::vector<std::string> &files, std::string &file) {
  app.add_option("files", files, "tuning files")->required();
  app.add_option("-o,--output", file, "file for the lines of all files; it may be one of them")->required();
}

/// Reports an error for options of `app` that precede its subcommand, since they would be ignored.
static void refuseOptionsBefore(const CLI::App &app, CLI::App &subcommand) {
  subcommand.final_callback([&app, &subcommand] {
    for (const CLI::Option *option : app.get_options())
      if (option->count() > 0)
        throw CLI::ValidationError(option->get_name(),
                                   fmt::format("wrong position; expected after \"{}\"", subcommand.get_name()));
  });
}

TuneCommand::TuneCommand(CLI::App &app, const std::string &name, const TuningOptions &advice)
    : tune(app.add_subcommand("tune", "measure schedules on this machine and write the best ones to a file")) {
  tune->require_subcommand(0, 1);
  addMeasuring(name);
  addCoverage(name, advice);
  addVerify(name);
  merge = tune->add_subcommand("merge",
                               "merge tuning files; of two measurements of one case the better founded one is kept");
  addMergeOptions(*merge, mergedFiles, mergedFile);
  for (CLI::App *subcommand : {coverage, verify, merge})
    refuseOptionsBefore(*tune, *subcommand);
}

void TuneCommand::addMeasuring(const std::string &name) {
  measuring.name = name;
  measuring.file = tuningFileOf(name);
  measuring.targets = defaultTargetNames();
  tune->add_option("--name", measuring.name, "name of the model")->capture_default_str();
  tune->add_option("--target", measuring.targets,
                   "instruction sets to tune for; those that this machine does not support are skipped")
      ->delimiter(',')
      ->check(knownTarget())
      ->capture_default_str();
  addRunner(*tune)->needs("--target");
  measuredFile = tune->add_option("--tuning", measuring.file, "the tuning file; an existing file is continued")
                     ->capture_default_str();
  addPart();
  tune->add_option("--budget", measuring.budget, "maximum time to spend: 90s, 10m, 1h")
      ->transform(CLI::AsNumberWithUnit(std::map<std::string, double>{{"s", 1}, {"m", 60}, {"h", 3600}},
                                        CLI::AsNumberWithUnit::CASE_INSENSITIVE, "TIME"))
      ->check(CLI::PositiveNumber)
      ->default_str("10m");
  tune->add_option("--threads", measuring.threads, "threads that the model will run with; default: the number of CPUs")
      ->check(CLI::Range(1u, 1024u));
  tune->add_option(
          "--extent", extents,
          "NAME=VALUE: size of a dynamic dimension to tune for; several values are possible; default: the upper bound "
          "and half of it")
      ->check(checkExtent);
  tune->add_option("--kernel", measuring.kernels, "tune only the kernels whose names match this regular expression");
  addLoweringOptions(*tune, measuring.lowering);
  tune->add_flag("--json", isJson, "print one JSON object per line");
}

CLI::Option *TuneCommand::addRunner(CLI::App &app) {
  return app
      .add_option(
          "--runner", measuring.runner.script,
          "measure on another machine: a script that links programs for it (\"SCRIPT link PROGRAM FILE...\") and "
          "runs them there (\"SCRIPT run PROGRAM\")")
      ->check(CLI::ExistingFile);
}

void TuneCommand::addPart() {
  tune->add_option_function<std::string>(
          "--part",
          [this](const std::string &text) {
            std::optional<Part> part = parsePart(text);
            if (!part)
              throw CLI::ValidationError(
                  "--part",
                  fmt::format("wrong form; expected I/N, the I-th of N parts, from 1/N to N/N, got \"{}\"", text));
            measuring.part = *part;
          },
          "I/N: tune only the I-th of N parts of the kernels, to a file NAME.IofN.tuning; other machines measure the "
          "other parts, and \"tune merge\" merges the files")
      ->type_name("I/N");
}

void TuneCommand::addCoverage(const std::string &name, const TuningOptions &advice) {
  covering.name = name;
  covering.targets = defaultTargetNames();
  covering.tuning = advice;
  covering.tuning.file = tuningFileOf(name);
  coverage = tune->add_subcommand("coverage", "show which schedule each kernel gets from a tuning file, and why");
  coverage->add_option("--target", covering.targets, "instruction sets")
      ->delimiter(',')
      ->check(knownTarget())
      ->capture_default_str();
  coverage->add_option("--tuning", covering.tuning.file, "the tuning file")->capture_default_str();
  addChooseOptions(*coverage, covering.tuning.choose);
  addLoweringOptions(*coverage, covering.lowering);
  coverage
      ->add_option("--extent", extents,
                   "NAME=VALUE: size of a dynamic dimension in the call whose work is divided among the kernels")
      ->check(checkExtent);
  coverage
      ->add_option("--at-least", leastPercent,
                   "exit with status 1 if measured kernels do less than this percentage of the work")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
}

void TuneCommand::addVerify(const std::string &name) {
  verifiedName = name;
  verifiedFile = tuningFileOf(name);
  verify = tune->add_subcommand("verify", "check that a tuning file is sorted and that its schedules are legal today");
  verify->add_option("--tuning", verifiedFile, "the tuning file")->capture_default_str();
  addLoweringOptions(*verify, verifiedLowering);
  verify->add_flag("--fix", fixes, "write the file sorted and without illegal schedules");
  verify->add_flag("--prune", prunes, "also remove the lines that this model does not use")->needs("--fix");
  CLI::Option *measure = verify->add_flag("--measure", measures,
                                          "measure each kernel's best schedule and the default again, on this machine");
  measure->excludes("--fix");
  verify
      ->add_option(
          "--tolerance", tolerancePercent,
          "exit with status 1 if a schedule's share of the default's time exceeds the recorded one by this percentage")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->needs(measure);
  addRunner(*verify)->needs(measure);
  verify->add_flag("--json", isJson, "print one JSON object per line")->needs(measure);
}

// Implementation.

static int mergeFiles(const std::vector<std::string> &files, const std::string &output) {
  TuningDatabase all;
  for (const std::string &file : files) {
    llvm::Expected<TuningDatabase> database = TuningDatabase::load(file);
    if (!database)
      return fail(database.takeError());
    all.merge(*database);
  }
  if (llvm::Error error = all.save(output))
    return fail(std::move(error));
  fmt::print("{}: {} measurements\n", output, all.records().size());
  return 0;
}

int TuneCommand::runMeasuring(const Graph &graph) {
  measuring.extents = toExtents(extents);
  const Part &part = measuring.part;
  if (!part.isWhole() && measuredFile->count() == 0) // one file per part: all nodes may share a folder
    measuring.file = tuningFileOf(fmt::format("{}.{}of{}", measuring.name, part.number, part.count));
  if (isJson)
    measuring.form = DisplayForm::Json;
  else
    measuring.form = isatty(STDOUT_FILENO) ? DisplayForm::Terminal : DisplayForm::Lines;
  return tuneModel(graph, measuring, llvm::errs());
}

int TuneCommand::runCoverage(const Graph &graph) {
  covering.extents = toExtents(extents);
  covering.tuning.command += flagsOf(covering.lowering);
  llvm::Expected<std::vector<CoveredKernel>> kernels = coverModel(graph, covering);
  if (!kernels)
    return fail(kernels.takeError());
  fmt::print("{}", printCoverage(*kernels));
  std::vector<std::string> lacking; // targets with kernels that have no measurement
  for (const CoveredKernel &kernel : *kernels)
    if (kernel.summary.choice.provenance != Provenance::Exact && !llvm::is_contained(lacking, kernel.target))
      lacking.push_back(kernel.target);
  if (!lacking.empty())
    fmt::print("measure the others with: {}\n", measuringCommand(lacking, covering.tuning));
  return measuredShare(*kernels) * 100 + 1e-9 < leastPercent ? 1 : 0;
}

int TuneCommand::runVerify(const Graph &graph) {
  auto buffer = llvm::MemoryBuffer::getFile(verifiedFile, /*IsText=*/true);
  llvm::Expected<TuningDatabase> database = TuningDatabase::load(verifiedFile);
  if (!database)
    return fail(database.takeError());
  llvm::Expected<Verification> verification = verifyTuning(graph, verifiedName, verifiedLowering, *database);
  if (!verification)
    return fail(verification.takeError());
  if (!buffer || (*buffer)->getBuffer() != database->text())
    verification->problems.push_back("lines are not sorted, or duplicated");
  for (const std::string &problem : verification->problems)
    fmt::print(stderr, "{}: {}: {}\n", fixes ? "fixed" : "error", verifiedFile, problem);
  for (const std::string &warning : verification->warnings)
    fmt::print(stderr, "{}: {}: {}\n", prunes ? "removed" : "warning", verifiedFile, warning);
  if (fixes) {
    const TuningDatabase &kept = prunes ? verification->used : verification->legal;
    if (llvm::Error error = kept.save(verifiedFile))
      return fail(std::move(error));
    fmt::print("{}: {} of {} measurements kept\n", verifiedFile, kept.records().size(), database->records().size());
    return 0;
  }
  if (!verification->problems.empty()) {
    fmt::print(stderr, "--fix writes the file without these errors\n");
    return 1;
  }
  if (measures)
    return runDrift(graph, *database);
  fmt::print("{}: {} measurements, {} of this model\n", verifiedFile, database->records().size(),
             verification->used.records().size());
  return 0;
}

static void printDrift(const KernelDrift &kernel, bool isLost) {
  const Task::Drift &drift = kernel.drift;
  std::string change = drift.failure.empty() ? fmt::format("{:.1f} %", drift.now * 100) : drift.failure;
  fmt::print("{:<10} {:<16} {:>7} {:<13} {:>7.1f} %  {:>7}  {}{}\n", kernel.target, kernel.kernel, kernel.threads,
             fmt::format("{}", fmt::join(kernel.extents, ",")), drift.recorded * 100, change, toString(drift.best),
             isLost ? "  LOST" : "");
}

static void printDriftObject(const KernelDrift &kernel, bool isLost) {
  const Task::Drift &drift = kernel.drift;
  llvm::json::Object point, object{{"event", "drift"},
                                   {"target", kernel.target},
                                   {"kernel", kernel.kernel},
                                   {"threads", kernel.threads},
                                   {"extents", llvm::json::Array(kernel.extents)},
                                   {"recorded", drift.recorded},
                                   {"is_lost", isLost}};
  for (const auto &[key, value] : drift.best)
    point[key] = value;
  object["best"] = std::move(point);
  if (drift.failure.empty())
    object["now"] = drift.now;
  else
    object["words"] = llvm::json::fixUTF8(drift.failure);
  llvm::outs() << llvm::json::Value(std::move(object)) << "\n";
  llvm::outs().flush();
}

int TuneCommand::runDrift(const Graph &graph, const TuningDatabase &database) {
  size_t measured = 0, lost = 0;
  if (!isJson)
    fmt::print("{:<10} {:<16} {:>7} {:<13} {:>9}  {:>7}  {}\n", "target", "kernel", "threads", "extents", "recorded",
               "now", "best");
  llvm::Error error =
      measureDrift(graph, verifiedName, verifiedLowering, database, measuring.runner, [&](const KernelDrift &kernel) {
        const bool isLost = kernel.isLost(tolerancePercent / 100);
        ++measured;
        lost += isLost;
        (isJson ? printDriftObject : printDrift)(kernel, isLost);
        std::fflush(stdout);
      });
  if (error)
    return fail(std::move(error));
  if (measured == 0)
    return fail(llvm::createStringError(verifiedFile + ": no measurements of this model's kernels on this machine"));
  if (!isJson)
    fmt::print("of the default's time; {} of {} take more than recorded by over {} %\n", lost, measured,
               tolerancePercent);
  return lost ? 1 : 0;
}

int TuneCommand::run(Graph (*trace)()) {
  std::optional<TemporaryFolder> folder; // programs for another machine
  if (!measuring.runner.script.empty()) {
    llvm::Expected<TemporaryFolder> made = TemporaryFolder::make();
    if (!made)
      return fail(made.takeError());
    measuring.runner.folder = folder.emplace(std::move(*made)).path();
  }
  if (merge->parsed())
    return mergeFiles(mergedFiles, mergedFile);
  if (coverage->parsed() || verify->parsed()) { // before they read a file, which may be missing
    const LoweringOptions &lowering = coverage->parsed() ? covering.lowering : verifiedLowering;
    if (std::string wrong = checkBuilt(lowering.ranks); !wrong.empty())
      return fail(llvm::createStringError(wrong));
  }
  if (coverage->parsed())
    return runCoverage(trace());
  return verify->parsed() ? runVerify(trace()) : runMeasuring(trace());
}

int runMerge(int argc, char **argv) {
  CLI::App app("Merges tuning files; of two measurements of one case the better founded one is kept.");
  std::vector<std::string> files;
  std::string output;
  addMergeOptions(app, files, output);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return refuseCommandLine(app, error);
  }
  return mergeFiles(files, output);
}

} // namespace kiln

/// For `kiln tune merge`, which has no spec and looks up this function by name.
extern "C" int kiln_tune_merge(int argc, char **argv) { return kiln::runMerge(argc, argv); }
