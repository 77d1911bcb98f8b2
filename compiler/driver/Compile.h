// SPDX-License-Identifier: Apache-2.0
//
// The whole compilation of a model: graph -> kiln dialect -> kernels -> objects -> archive, headers and manifest. A
// generator calls this; everything else in compiler/driver supports it.
#pragma once

#include "compiler/driver/CompileKernels.h"
#include "compiler/driver/Lower.h"
#include "compiler/driver/Schedules.h"
#include "compiler/object/Object.h"
#include "compiler/package/PackWeights.h"

#include "mlir/Support/LLVM.h"
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

/// What compiling produces: a library, the text of one stage, object files, the members of the library's archive in the
/// report, the layout of the weights (without kernels), or only the report.
enum class EmitForm { Library, Ir, Linalg, Stmt, Assembly, Objects, Memory, Layout, Nothing };

struct CompileOptions {
  std::string name;                 // prefix of every global symbol; a C identifier
  std::vector<std::string> targets; // names of the targets, best first
  std::string outputDirectory = ".";
  std::string dumpDirectory; // if not empty, every stage of the IR is written there
  EmitForm form = EmitForm::Library;
  bool showsCosts = false; // whether KernelSummary::cost is computed
  std::string loopsOf;     // the target whose kernels get KernelSummary::loops; empty: none
  /// The extents of the calls whose steps are listed. Extents that are not given take their largest value.
  std::map<std::string, int64_t> extents;
  LoweringOptions lowering;
  std::optional<uint64_t> maxTextBytes, maxArenaBytes; // budgets: exceeding one is an error
  TuningOptions tuning;
  std::optional<Checkpoint> embedded; // weights that are embedded in the archive
  bool hasSelfTest = false;           // whether the archive gets a self-test
  bool isShared = false;              // whether to write a shared object instead of the archive
  std::vector<std::string> bindings;  // languages to write bindings for (Bindings.h)
  std::string linker; // a C compiler that links the shared object; empty: the default one (SharedObject.h)
  /// If set, chooses the schedule configurations in place of the tuning options.
  std::function<ScheduleConfig(const Schedulable &kernel)> configOf = nullptr;
  /// How kernels are compiled. The cache in it is replaced by the one in `cacheFolder`; an empty folder means no cache.
  KernelOptions kernels;
  std::string cacheFolder;
  uint64_t maxCacheBytes = ObjectCache::defaultBytes;
};

/// A part of the compilation and the time that it took.
struct StageTime {
  std::string stage;
  double seconds;
};

/// Facts that compiling found, for inspection.
struct CompileReport {
  ModelInterface model;
  std::vector<Variant> variants;
  std::string memoryPlan; // a table and a picture for each entry of the first target
  std::string text;       // in the form that `EmitForm` selects
  std::vector<std::string> remarks;
  std::vector<ObjectFile> members; // members of the archive, with EmitForm::Memory
  uint64_t archiveBytes = 0, textBytes = 0;
  std::string libraryFile;      // "libNAME.a"
  std::vector<StageTime> times; // in the order of execution
};

/// Compiles `graph`. With EmitForm::Library it writes libNAME.a (or a shared object), NAME.h, NAME.hpp,
/// NAME.manifest.json, NAME.pc and NAME.LICENSE.txt to the output directory. Failures have been reported as diagnostics
/// or on `errors`.
mlir::FailureOr<CompileReport> compileModel(const Graph &graph, const CompileOptions &options,
                                            llvm::raw_ostream &errors);

} // namespace kiln
