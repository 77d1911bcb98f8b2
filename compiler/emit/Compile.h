// SPDX-License-Identifier: Apache-2.0
//
// The whole way of a model: graph -> kiln dialect -> kernels -> objects -> archive, headers and manifest. This is what
// a generator calls; everything else of compiler/emit serves it.
#pragma once

#include "compiler/emit/CompileKernels.h"
#include "compiler/emit/Lower.h"
#include "compiler/emit/PackWeights.h"
#include "compiler/emit/Schedules.h"
#include "compiler/object/Object.h"

#include "mlir/Support/LLVM.h"
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

/// What compiling leaves: a library, a stage as text, object files, the members of the library's archive in the report,
/// where weights lie (without kernels), or only the report.
enum class EmitForm { Library, Ir, Linalg, Stmt, Assembly, Objects, Memory, Layout, Nothing };

struct CompileOptions {
  std::string name;                 // prefix of every global symbol; a C identifier
  std::vector<std::string> targets; // their names, best first
  std::string outputDirectory = ".";
  std::string dumpDirectory; // not empty: every stage of the IR goes there
  EmitForm form = EmitForm::Library;
  bool showsCosts = false; // computes KernelSummary::cost
  std::string loopsOf;     // the target of whose kernels KernelSummary::loops is printed; empty: none
  /// Of the calls whose steps are listed; the largest where none is given.
  std::map<std::string, int64_t> extents;
  LoweringOptions lowering;
  std::optional<uint64_t> maxTextBytes, maxArenaBytes; // budgets: exceeding one is an error
  TuningOptions tuning;
  std::optional<Checkpoint> embedded; // weights that go into the archive
  bool hasSelfTest = false;           // the archive gets one
  bool isShared = false;              // a shared object instead of the archive
  std::vector<std::string> bindings;  // languages that the library gets some for (Bindings.h)
  std::string linker;                 // a C compiler that links it; empty: a known one (SharedObject.h)
  /// Instead of what the tuning options choose, if it is there.
  std::function<SchedulePoint(const Schedulable &kernel)> pointOf = nullptr;
  /// How kernels are compiled, but for the cache, which is in `cacheFolder`, if that is not empty.
  KernelOptions kernels;
  std::string cacheFolder;
  uint64_t maxCacheBytes = ObjectCache::defaultBytes;
};

/// A part of the compilation and the time it took.
struct StageTime {
  std::string stage;
  double seconds;
};

/// What compiling told, for inspection.
struct CompileReport {
  ModelInterface model;
  std::vector<Variant> variants;
  std::string memoryPlan; // a table and a picture for each entry of the first target
  std::string text;       // of the form asked for
  std::vector<std::string> remarks;
  std::vector<ObjectFile> members; // of the archive, with EmitForm::Memory
  uint64_t archiveBytes = 0, textBytes = 0;
  std::string libraryFile;      // "libNAME.a"
  std::vector<StageTime> times; // one after the other
};

/// Compiles `graph`. With EmitForm::Library it writes libNAME.a (or a shared object), NAME.h, NAME.hpp,
/// NAME.manifest.json, NAME.pc and NAME.LICENSE.txt to the output directory. Failures have been reported as diagnostics
/// or on `errors`.
mlir::FailureOr<CompileReport> compileModel(const Graph &graph, const CompileOptions &options,
                                            llvm::raw_ostream &errors);

} // namespace kiln
