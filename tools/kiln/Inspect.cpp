// SPDX-License-Identifier: Apache-2.0
#include "tools/kiln/Inspect.h"

#include "compiler/inspect/Graph.h"
#include "compiler/inspect/Page.h"
#include "compiler/inspect/Words.h"
#include "compiler/library/Headers.h"
#include "compiler/pipeline/ImportModel.h"
#include "compiler/pipeline/Pipeline.h"
#include "compiler/tuner/Executor.h"
#include "compiler/tuner/Probes.h"
#include "compiler/tuner/TargetsToTune.h"
#include "tools/kiln/CommandLine.h"
#include "tools/kiln/Options.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <fmt/format.h>

namespace kiln {

void addViewOptions(CLI::App &app, ViewOptions &options) {
  app.add_option("--html", options.page, "write an HTML page to this file, instead of printing text");
  app.add_option("--times", options.times, "a table of measured times, which replace predicted ones");
  CLI::Option *flops = app.add_option("--flops", options.operations,
                                      "operations per second for predicted times; default: measured on this machine")
                           ->check(CLI::PositiveNumber);
  CLI::Option *bandwidth = app.add_option("--bandwidth", options.bytes, "bytes per second for predicted times")
                               ->check(CLI::PositiveNumber)
                               ->needs(flops);
  flops->needs(bandwidth);
}

static bool isOfThisMachine(const std::string &target) {
  const Target *known = findTarget(target);
  if (!known || known->info().memorySpace != KILN_MEMORY_HOST)
    return false;
  llvm::Expected<Machine> machine = findMachine(known->info());
  if (machine)
    return true;
  llvm::consumeError(machine.takeError());
  return false;
}

std::string chooseShown(const std::vector<std::string> &targets) {
  auto here = llvm::find_if(targets, isOfThisMachine);
  return here == targets.end() ? targets.front() : *here;
}

llvm::Expected<Inspection> inspectModel(const Graph &graph, const CompileReport &report, const CompileOptions &options,
                                        const std::string &target) {
  llvm::Expected<Inspection> inspection =
      readManifest(writeManifest(report.model, report.variants), "the manifest", target);
  if (!inspection)
    return inspection;
  for (InspectedEntry &entry : inspection->entries)
    if (llvm::any_of(entry.extents, [&](const InspectedExtent &extent) { return options.extents.count(extent.name); }))
      for (const InspectedExtent &extent : entry.extents) {
        auto given = options.extents.find(extent.name);
        entry.listedAt += fmt::format("{}{}={}", entry.listedAt.empty() ? "" : ", ", extent.name,
                                      given == options.extents.end() ? extent.max : given->second);
      }
  for (const Variant &variant : report.variants)
    if (variant.target == target)
      for (auto [shown, kernel] : llvm::zip_equal(inspection->kernels, variant.kernels))
        shown.loops = kernel.loops;
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  loadDialects(context);
  if (auto module = importModel(graph, &context, report.model.name, options.lowering.weights, options.lowering.ranks))
    addGraphs(*inspection, *module);
  return inspection;
}

/// Measures the peak rates of this machine with the target's instructions, within the model's memory footprint. Returns
/// nothing if the machine cannot run the target.
static std::optional<PeakRates> probe(const Inspection &inspection, unsigned threads) {
  if (!isOfThisMachine(inspection.target))
    return std::nullopt;
  int64_t footprint = inspection.packedBytes;
  for (const InspectedEntry &entry : inspection.entries)
    footprint = std::max(footprint, inspection.packedBytes + entry.arenaFixed);
  const Executor executor(threads);
  const PeakRates rates{probeOperations(findTarget(inspection.target)->machine(), executor.get()),
                        probeCopying(std::clamp<int64_t>(footprint, 1 << 20, 256 << 20), executor.get()),
                        fmt::format("measured here on {} thread{}", threads, threads == 1 ? "" : "s")};
  return rates.operations > 0 ? std::optional(rates) : std::nullopt;
}

static llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> openTimes(const std::string &path) {
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file)
    return llvm::createStringError(fmt::format("cannot read \"{}\": {}", path, file.getError().message()));
  return std::move(*file);
}

llvm::Expected<std::map<std::string, int64_t>> extentsOfTimes(const ViewOptions &options) {
  if (options.times.empty())
    return std::map<std::string, int64_t>();
  auto file = openTimes(options.times);
  return file ? extentsOfTimes((*file)->getBuffer(), options.times) : file.takeError();
}

static llvm::Error readTimes(Inspection &inspection, const ViewOptions &options) {
  if (options.operations > 0)
    predictTimes(inspection, {options.operations, options.bytes, "given"});
  else if (std::optional<PeakRates> rates = probe(inspection, options.threads))
    predictTimes(inspection, *rates);
  if (options.times.empty())
    return llvm::Error::success();
  auto file = openTimes(options.times);
  if (!file)
    return file.takeError();
  return takeTimes(inspection, (*file)->getBuffer(), options.times);
}

int showInspection(Inspection inspection, const ViewOptions &options) {
  if (llvm::Error error = readTimes(inspection, options))
    return fail(std::move(error));
  if (options.page.empty()) {
    fmt::print("{}", printWords(inspection));
    return 0;
  }
  std::error_code code;
  llvm::raw_fd_ostream out(options.page, code);
  if (!code) {
    out << printPage(inspection);
    out.close();
    code = out.error();
    out.clear_error();
  }
  if (code)
    return fail(llvm::createStringError(fmt::format("cannot write \"{}\": {}", options.page, code.message())));
  fmt::print("{}\n", options.page);
  return 0;
}

/// Returns the path of the manifest: for libNAME.a, NAME.manifest.json in the same folder.
static std::string manifestOf(llvm::StringRef path) {
  if (!path.ends_with(".a"))
    return path.str();
  llvm::StringRef name = llvm::sys::path::stem(path);
  name.consume_front("lib");
  llvm::SmallString<128> manifest = llvm::sys::path::parent_path(path);
  llvm::sys::path::append(manifest, name + ".manifest.json");
  return manifest.str().str();
}

llvm::Expected<Inspection> readLibrary(const std::string &path, std::string target) {
  const std::string manifest = manifestOf(path);
  auto file = llvm::MemoryBuffer::getFile(manifest);
  if (!file)
    return llvm::createStringError(fmt::format("cannot read \"{}\", which \"compile\" writes next to the archive: {}",
                                               manifest, file.getError().message()));
  if (target.empty()) {
    llvm::Expected<std::vector<std::string>> targets = readTargets((*file)->getBuffer(), manifest);
    if (!targets)
      return targets.takeError();
    if (!targets->empty())
      target = chooseShown(*targets);
  }
  return readManifest((*file)->getBuffer(), manifest, target);
}

static int inspectArchive(const std::string &path, const std::string &target, const ViewOptions &options) {
  llvm::Expected<Inspection> inspection = readLibrary(path, target);
  return inspection ? showInspection(std::move(*inspection), options) : fail(inspection.takeError());
}

static int runInspectArchive(int argc, char **argv) {
  CLI::App app("Shows the content of a library.");
  std::string path, target;
  ViewOptions options;
  app.add_option("archive", path, "libNAME.a next to its NAME.manifest.json, or the manifest")->required();
  app.add_option("--target", target, "instruction set to show; default: the first one that this machine supports");
  app.add_option("--threads", options.threads, "number of threads for measuring peak rates")
      ->check(CLI::Range(1u, 1024u))
      ->capture_default_str();
  addViewOptions(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return refuseCommandLine(app, error);
  }
  return inspectArchive(path, target, options);
}

} // namespace kiln

/// For `kiln inspect NAME.a`, which has no spec and looks up this function by name.
extern "C" int kiln_inspect_archive(int argc, char **argv) { return kiln::runInspectArchive(argc, argv); }
