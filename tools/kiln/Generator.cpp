// SPDX-License-Identifier: Apache-2.0
//
// The command line of a generator. Only this file declares options; `kiln` passes its own arguments through.
#include "compiler/driver/Compile.h"
#include "compiler/driver/Untuned.h"
#include "compiler/library/Bindings.h"
#include "compiler/library/Headers.h"
#include "compiler/library/Version.h"
#include "tools/kiln/Bench.h"
#include "tools/kiln/Checkpoints.h"
#include "tools/kiln/CommandLine.h"
#include "tools/kiln/Inspect.h"
#include "tools/kiln/Options.h"
#include "tools/kiln/Scale.h"
#include "tools/kiln/Tune.h"

#include "targets/registry.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <unistd.h>
#include <utility>

namespace kiln {

/// Prints one line that is rewritten on a terminal, and nothing elsewhere; with `isVerbose`, one line per kernel.
static void showProgress(const KernelProgress &progress, bool isVerbose) {
  const std::string line =
      fmt::format("[{}/{}] {} {} {}", progress.done, progress.total, progress.kernel.target->name().str(),
                  mlir::func::FuncOp(progress.kernel.function).getName().str(),
                  progress.isCached ? "cached" : fmt::format("{:.2f} s", progress.seconds));
  if (isVerbose)
    fmt::print(stderr, "{}\n", line);
  else if (isatty(STDERR_FILENO))
    fmt::print(stderr, "\r\033[K{}{}", line, progress.done == progress.total ? "\r\033[K" : "");
  std::fflush(stderr);
}

/// How long a kernel took to compile.
struct CompiledKernel {
  double seconds;
  std::string target, kernel;
};

/// The command line's options in addition to those of the compiler.
struct CommandOptions {
  bool isVerbose = false, showsTimes = false, isCacheless = false, isUntuned = false;
};

static void addCompileOptions(CLI::App &app, CompileOptions &options, CommandOptions &command) {
  addModelOptions(app, options);
  addTuningOptions(app, options.tuning, command.isUntuned);
  addChooseOptions(app, options.tuning.choose);
  app.add_option("--dump-ir", options.dumpDirectory, "write the IR after each stage to this folder");
  app.add_flag(
      "--verify-passes", options.lowering.verifyPasses,
      "evaluate the model after each pass on random inputs and weights, and report a pass that changes a result");
  app.add_option("-j,--jobs", options.kernels.workers,
                 "number of kernels to compile in parallel; 0: the number of CPUs")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--kernel-seconds", options.kernels.secondsLimit, "fail if a kernel takes longer to compile; 0: never")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_flag("--verify-kernels", options.kernels.checksMemory,
               "check each kernel's memory accesses for a few extents");
  app.add_option("--cache-dir", options.cacheFolder, "folder of compiled kernels, shared by all models")
      ->capture_default_str();
  app.add_flag("--no-cache", command.isCacheless, "compile every kernel, and do not cache any");
  app.add_option("--max-cache-bytes", options.maxCacheBytes,
                 "size limit of the cache; the least recently used kernels are removed")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_flag("-v,--verbose", command.isVerbose, "print a line for each kernel");
  app.add_flag("--time", command.showsTimes, "print the time of each stage of the compiler, and the slowest kernels");
}

/// Completes the options after parsing. `kernels` gets the times of kernels that are not cached.
static void applyCommandOptions(CompileOptions &options, const CommandOptions &command,
                                std::vector<CompiledKernel> &kernels) {
  if (command.isCacheless)
    options.cacheFolder.clear();
  options.tuning.command += flagsOf(options.lowering); // the advised command must measure these kernels
  findTuningFile(options.tuning, options.name, command.isUntuned);
  options.kernels.progress = [&kernels, isVerbose = command.isVerbose](const KernelProgress &progress) {
    showProgress(progress, isVerbose);
    if (!progress.isCached)
      kernels.push_back({progress.seconds, progress.kernel.target->name().str(),
                         mlir::func::FuncOp(progress.kernel.function).getName().str()});
  };
}

/// Prints the time of each stage, and those of the slowest kernels, which are part of a stage's.
static void printTimes(const CompileReport &report, std::vector<CompiledKernel> kernels) {
  constexpr size_t mostShown = 5;
  double all = 0;
  for (const StageTime &time : report.times) {
    fmt::print("{:8.3f} s  {}\n", time.seconds, time.stage);
    all += time.seconds;
  }
  fmt::print("{:8.3f} s  total\n", all);
  llvm::stable_sort(kernels, [](const CompiledKernel &a, const CompiledKernel &b) { return a.seconds > b.seconds; });
  for (const CompiledKernel &time : llvm::ArrayRef(kernels).take_front(mostShown))
    fmt::print("{:8.3f} s  kernel {} of {}\n", time.seconds, time.kernel, time.target);
}

static void printSummary(const CompileReport &report, const CompileOptions &options) {
  fmt::print("{}/{}: {} parameters, {} archive, {} code\n", options.outputDirectory, report.libraryFile,
             report.model.parameters, mib(report.archiveBytes), mib(report.textBytes));
  for (size_t i = 0; i < report.model.entries.size(); ++i) {
    ArenaBytes arena = arenaBytes(report.variants, i);
    fmt::print("  {}: arena {} + {} per worker\n", report.model.entries[i].name, mib(arena.fixed),
               mib(arena.perWorker));
  }
  for (const std::string &remark : report.remarks)
    fmt::print("  {}\n", remark);
  fmt::print("  {}\n", describeTuning(report.variants, options.tuning));
}

/// Warns of kernels without a measurement, in commands that only inspect or print a stage. The warning only appears if
/// a tuning file is in use.
static void warnOfUntuned(const CompileReport &report, const TuningOptions &options) {
  if (options.file.empty() || isTuned(report.variants) || report.variants.empty())
    return;
  std::fflush(stdout);
  fmt::print(stderr, "{}\n", describeTuning(report.variants, options));
}

static int runCompile(const Graph &graph, CompileOptions options, const CommandOptions &command,
                      const std::vector<CompiledKernel> &kernels, const Checkpoint &embedded) {
  if (std::string wrong = checkCheckpoint(embedded); !wrong.empty()) {
    llvm::errs() << "error: " << wrong << "\n";
    return 1;
  }
  if (!embedded.path.empty())
    options.embedded = embedded;
  mlir::FailureOr<CompileReport> report = compileModel(graph, options, llvm::errs());
  if (failed(report))
    return 1;
  if (options.form == EmitForm::Library)
    printSummary(*report, options);
  else {
    fmt::print("{}", report->text);
    warnOfUntuned(*report, options.tuning);
  }
  if (command.showsTimes)
    printTimes(*report, kernels);
  return 0;
}

/// The parts that `inspect` shows. If none is selected, it shows the content of the library.
struct InspectOptions {
  bool memory = false, schedule = false, cost = false, interface = false, weights = false, manifest = false;
  ViewOptions view;

  bool isPart() const { return memory || schedule || cost || interface || weights || manifest; }
};

/// Prints one line per tensor of the weight file, with its format for the first instruction set.
static void printWeights(const CompileReport &report) {
  const Variant &variant = report.variants.front();
  uint64_t total = 0;
  for (auto [weight, place] : llvm::zip_first(report.model.weights, variant.placements)) {
    const uint64_t bytes = storedBytes(weight, place);
    total += bytes * weight.copies;
    fmt::print("  {} {}[{}]{} as {}: {} bytes{}\n", weight.name, name_of(weight.element), fmt::join(weight.shape, ", "),
               weight.copies > 1 ? fmt::format(" x {}", weight.copies) : "", name_of(place.element), bytes,
               weight.copies > 1 ? " each" : "");
  }
  fmt::print("  {} bytes in total, {} packed\n", total, variant.packedBytes);
}

static int runInspect(const Graph &graph, CompileOptions options, const CommandOptions &command,
                      const std::vector<CompiledKernel> &kernels, InspectOptions show) {
  options.form = EmitForm::Nothing;
  options.showsCosts = show.cost;
  const std::string shown = chooseShown(options.targets);
  if (!show.view.page.empty())
    options.loopsOf = shown;
  llvm::Expected<std::map<std::string, int64_t>> extents = extentsOfTimes(show.view);
  if (!extents)
    return fail(extents.takeError());
  options.extents = std::move(*extents);
  mlir::FailureOr<CompileReport> report = compileModel(graph, options, llvm::errs());
  if (failed(report))
    return 1;
  if (!show.isPart() || !show.view.page.empty()) {
    llvm::Expected<Inspection> inspection = inspectModel(graph, *report, options, shown);
    if (!inspection)
      return fail(inspection.takeError());
    show.view.threads = std::max<int64_t>(1, options.tuning.choose.threads);
    if (const int status = showInspection(std::move(*inspection), show.view))
      return status;
  }
  if (show.interface) {
    fmt::print("{}: {} parameters\n", report->model.name, report->model.parameters);
    for (const WeightInterface &weight : report->model.weights)
      fmt::print("  {} {}[{}]{}\n", weight.name, name_of(weight.element), fmt::join(weight.shape, ", "),
                 weight.copies > 1 ? fmt::format(" x {}", weight.copies) : "");
  }
  if (show.weights)
    printWeights(*report);
  if (show.memory)
    fmt::print("{}", report->memoryPlan);
  if (show.schedule)
    for (const Variant &variant : report->variants)
      for (const KernelSummary &kernel : variant.kernels)
        fmt::print("{}  {}  {}  {}  {} bytes  {}\n", kernel.symbol, kernel.strategy, toString(kernel.schedule),
                   describeChoice(kernel.choice), kernel.textBytes, fmt::join(kernel.layers, " "));
  if (show.cost)
    for (const Variant &variant : report->variants)
      for (const KernelSummary &kernel : variant.kernels)
        fmt::print("{}\n{}", kernel.symbol, kernel.cost.empty() ? "  no cost model\n" : kernel.cost);
  if (show.manifest)
    fmt::print("{}", writeManifest(report->model, report->variants));
  warnOfUntuned(*report, options.tuning);
  if (command.showsTimes)
    printTimes(*report, kernels);
  return 0;
}

/// Prepares a parser for a command line that has a spec among its options: it collects all words that are neither
/// options nor values of options.
static void prepareSearch(CLI::App &app) {
  app.allow_extras();
  for (CLI::Option *option : app.get_options([](const CLI::Option *) { return true; })) {
    option->required(false); // the generator reports missing options
    if (option->get_positional())
      app.remove_option(option);
    else if (option->get_items_expected_max() > 1)
      option->allow_extra_args(false); // otherwise the spec would be a value
  }
  for (CLI::App *subcommand : app.get_subcommands([](const CLI::App *) { return true; }))
    prepareSearch(*subcommand);
}

/// Returns the word that is the spec, or a compiled library.
static std::string chooseSpec(const std::vector<std::string> &words) {
  std::vector<std::string> candidates;
  for (const std::string &word : words)
    if (!word.starts_with("-"))
      candidates.push_back(word);
  const auto isThere = [](const std::string &word) { return llvm::sys::fs::is_regular_file(word); };
  const auto isSource = [&](const std::string &word) {
    const llvm::StringRef kind = llvm::sys::path::extension(word);
    const llvm::StringRef kinds[] = {".C", ".CPP", ".c++", ".cc", ".cp", ".cpp", ".cxx", ".a", ".json"};
    return isThere(word) && llvm::is_contained(kinds, kind);
  };
  if (auto found = llvm::find_if(candidates, isSource); found != candidates.end())
    return *found;
  if (auto found = llvm::find_if(candidates, isThere); found != candidates.end())
    return *found;
  return candidates.empty() ? "" : candidates.front();
}

static void addVersion(CLI::App &app) {
  app.set_version_flag("--version", versionReport());
  for (CLI::App *subcommand : app.get_subcommands([](const CLI::App *) { return true; }))
    addVersion(*subcommand);
}

/// Runs the command line of a generator. With `spec`, only parses it to find the spec that the generator is built from.
static int runCommandLine(int argc, char **argv, const char *name, Graph (*trace)(), std::string *spec) {
  CLI::App app(fmt::format("Compiles the model \"{}\" to a static library.", name));
  app.require_subcommand(0, 1); // an unknown subcommand is then reported by its name
  CompileOptions options;
  options.name = name;
  options.targets = defaultTargetNames();
  const char *given = std::getenv("KILN_TUNE_COMMAND"); // set by `kiln`, whose generator is temporary
  options.tuning.command = given ? given : quoteWord(argv[0]) + " tune";
  if (const char *end = std::getenv("KILN_TUNE_COMMAND_END"))
    options.tuning.commandEnd = end;
  options.tuning.commandFile = tuningFileOf(name);
  options.cacheFolder = ObjectCache::defaultFolder();
  CommandOptions command;

  CLI::App *compile = app.add_subcommand(
      "compile", "write libNAME.a, NAME.h, NAME.hpp, NAME.manifest.json, NAME.pc and NAME.LICENSE.txt");
  addCompileOptions(*compile, options, command);
  compile->add_option("-o,--output-dir", options.outputDirectory, "folder of the six files")
      ->check(notEmpty())
      ->capture_default_str();
  const std::map<std::string, EmitForm> forms{{"library", EmitForm::Library}, {"ir", EmitForm::Ir},
                                              {"linalg", EmitForm::Linalg},   {"stmt", EmitForm::Stmt},
                                              {"asm", EmitForm::Assembly},    {"obj", EmitForm::Objects}};
  compile
      ->add_option("--emit", options.form,
                   "instead of a library, print a stage (ir, linalg, stmt or asm), or write object files (obj)")
      ->transform(CLI::CheckedTransformer(forms, CLI::ignore_case));
  compile->add_flag("--require-tuned", options.tuning.isRequired, "fail unless every kernel has a measured schedule");
  compile->add_flag("--selftest", options.hasSelfTest,
                    "add NAME_selftest to the archive, which detects a damaged library");
  compile->add_option("--bindings", options.bindings, "also write bindings for these languages: python, rust")
      ->delimiter(',')
      ->check(oneOf(bindingLanguages()));
  compile->add_flag("--shared", options.isShared,
                    "write a shared object that exports the functions of NAME.h, instead of an archive");
  compile
      ->add_option("--linker", options.linker,
                   "with --shared: the C compiler, with its options, that links for the target")
      ->needs("--shared");
  compile->add_option("--max-text-bytes", options.maxTextBytes, "fail if the archive's code is larger")
      ->check(CLI::NonNegativeNumber);
  compile
      ->add_option("--max-arena-bytes", options.maxArenaBytes, "fail if an entry's arena, with one worker, is larger")
      ->check(CLI::NonNegativeNumber);

  Checkpoint embedded;
  CLI::Option *embed =
      compile->add_option("--embed", embedded.path,
                          "embed the weights of this file in the archive: safetensors, an index of several, or .gguf");
  addCheckpointOptions(*compile, embedded);
  for (const char *how : {"--quantized", "--renames", "--rename"})
    compile->get_option(how)->needs(embed);

  InspectOptions show;
  CLI::App *inspect = app.add_subcommand("inspect", "show the kernels, memory and weights of the compiled model");
  addCompileOptions(*inspect, options, command);
  inspect->add_flag("--memory", show.memory, "show the memory plan and its lower bound");
  inspect->add_flag("--schedule", show.schedule, "show each kernel's strategy and schedule");
  inspect->add_flag("--cost", show.cost,
                    "show what limits each kernel on a GPU at its largest extents, computed, not measured");
  inspect->add_flag("--interface", show.interface, "show the weights that the model binds");
  inspect->add_flag("--weights-table", show.weights, "show the storage format and the size of each weight");
  inspect->add_flag("--manifest", show.manifest, "show the manifest");
  addViewOptions(*inspect, show.view);

  Checkpoint checkpoint;
  CLI::App *pack = addPack(app, options, checkpoint);
  CLI::App *check = addCheck(app, options, checkpoint);

  ScaleCommand scale(app, options);
  BenchCommand bench(app, options);
  TuneCommand tune(app, name, options.tuning);

  addVersion(app);
  if (spec)
    prepareSearch(app);
  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty())
      throw CLI::RequiredError("A subcommand");
    if (spec) {
      *spec = chooseSpec(app.remaining(/*recurse=*/true));
      if (spec->empty())
        throw CLI::RequiredError("spec");
      return 0;
    }
  } catch (const CLI::ParseError &error) {
    return refuseCommandLine(app, error);
  }
  std::vector<CompiledKernel> kernels;
  applyCommandOptions(options, command, kernels);
  if (tune.isChosen())
    return tune.run(trace);
  Graph graph = trace();
  if (bench.isChosen())
    return bench.run(graph);
  if (*pack)
    return runPack(graph, options, checkpoint);
  if (*check)
    return runCheck(graph, options, checkpoint);
  if (scale.isChosen())
    return scale.run(graph);
  return *compile ? runCompile(graph, options, command, kernels, embedded)
                  : runInspect(graph, options, command, kernels, show);
}

int runGenerator(int argc, char **argv, const char *name, Graph (*trace)()) {
  return runCommandLine(argc, argv, name, trace, nullptr);
}

} // namespace kiln

/// Finds the spec among the words of a subcommand, for `kiln`, which has no generator yet. On --help or an error it
/// prints the text, sets no place, and returns the exit status.
extern "C" int kiln_find_spec(int argc, char **argv, int *place) {
  std::string spec;
  const int status = kiln::runCommandLine(argc, argv, "NAME", nullptr, &spec);
  *place = -1;
  for (int i = 1; status == 0 && !spec.empty() && i < argc; ++i) // the last match is no option's value
    if (argv[i] == spec)
      *place = i;
  return status;
}
