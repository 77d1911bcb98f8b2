// SPDX-License-Identifier: Apache-2.0
#include "tools/kiln/Scale.h"

#include "tools/kiln/CommandLine.h"
#include "tools/kiln/Inspect.h"
#include "tools/kiln/Options.h"
#include "tools/scale/Library.h"

#include "llvm/Support/raw_ostream.h"
#include <fmt/format.h>
#include <utility>

namespace kiln {

struct ClusterOptions {
  std::string machine; // a file that describes the machine
  Placement placement;
};

/// The options for a spec.
struct ScaleOptions {
  CompileOptions &compiled;
  ClusterOptions cluster;
  std::vector<std::string> extents; // NAME=VALUE
};

/// Adds --machine, --microbatches, --interleave, --overlap and --type.
static void addClusterOptions(CLI::App &app, ClusterOptions &options) {
  Placement &placement = options.placement;
  auto addCount = [&](const char *name, int64_t &count, const char *words) {
    return app.add_option(name, count, words)->check(CLI::Range(int64_t(1), int64_t(1) << 20))->capture_default_str();
  };
  app.add_option("--machine", options.machine,
                 "file that describes the rates of a device and the links between devices")
      ->required();
  addCount("--microbatches", placement.microbatches,
           "number of micro-batches that pass through the pipeline stages one after another");
  addCount("--interleave", placement.interleave, "parts of the model in each stage");
  app.add_flag("--overlap", placement.overlaps, "sum gradients while others are computed");
  app.add_option("--type", placement.type, "type whose peak rate in the machine's file applies to kernels")
      ->capture_default_str();
}

/// Prints the prediction and returns the exit status.
static int showCosts(const Inspection &inspection, const ClusterOptions &options) {
  llvm::Expected<Cluster> cluster = loadCluster(options.machine);
  if (!cluster)
    return fail(cluster.takeError());
  llvm::Expected<std::vector<EntryCost>> costs = predictLibrary(inspection, *cluster, options.placement);
  if (!costs)
    return fail(costs.takeError());
  fmt::print("{}", printCosts(inspection, *cluster, options.placement, *costs));
  return 0;
}

ScaleCommand::ScaleCommand(CLI::App &app, CompileOptions &compiled)
    : scale(app.add_subcommand("scale", "predict the time of entries on a cluster")),
      options(new ScaleOptions{compiled, {}, {}}) {
  addModelOptions(*scale, compiled);
  scale
      ->add_option("--extent", options->extents,
                   "NAME=VALUE: size of a dynamic dimension in the calls; default: its upper bound")
      ->check(checkExtent);
  addClusterOptions(*scale, options->cluster);
}

ScaleCommand::~ScaleCommand() = default;

/// The communication of replicas and pipeline stages is predicted rather than compiled, so the model is compiled
/// without them. With a sharded optimiser state, the replicas are kept, as they reduce the memory.
int ScaleCommand::run(const Graph &graph) {
  CompileOptions compiled = options->compiled;
  ClusterOptions &cluster = options->cluster;
  cluster.placement.stages = std::exchange(compiled.lowering.ranks.stages, 1);
  cluster.placement.replicas = compiled.lowering.ranks.replicas;
  if (!compiled.lowering.ranks.sharesStates)
    compiled.lowering.ranks.replicas = 1;
  compiled.form = EmitForm::Nothing;
  const std::string shown = chooseShown(compiled.targets);
  compiled.targets = {shown};
  for (const auto &[name, values] : toExtents(options->extents)) {
    if (values.size() > 1) {
      fmt::print(stderr, "error: --extent: several values of \"{}\"; expected one, got {}\n", name, values.size());
      return 1;
    }
    compiled.extents[name] = values.front();
  }
  mlir::FailureOr<CompileReport> report = compileModel(graph, compiled, llvm::errs());
  if (failed(report))
    return 1;
  llvm::Expected<Inspection> inspection = inspectModel(graph, *report, compiled, shown);
  return inspection ? showCosts(*inspection, cluster) : fail(inspection.takeError());
}

static int runScaleArchive(int argc, char **argv) {
  CLI::App app("Predicts the time of a library's entries on a cluster, at their largest extents.");
  std::string path, target;
  ClusterOptions options;
  app.add_option("archive", path, "libNAME.a next to its NAME.manifest.json, or the manifest")->required();
  app.add_option("--target", target,
                 "instruction set whose kernels are used; default: the first one that this machine supports");
  addClusterOptions(app, options);
  app.add_option("--replicas", options.placement.replicas,
                 "number of replicas of all ranks and stages; training sums their gradients")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_option("--stages", options.placement.stages, "number of pipeline stages, each with its share of the layers")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return refuseCommandLine(app, error);
  }
  llvm::Expected<Inspection> inspection = readLibrary(path, target);
  return inspection ? showCosts(*inspection, options) : fail(inspection.takeError());
}

} // namespace kiln

/// For `kiln scale NAME.a`, which has no spec and looks up this function by name.
extern "C" int kiln_scale_archive(int argc, char **argv) { return kiln::runScaleArchive(argc, argv); }
