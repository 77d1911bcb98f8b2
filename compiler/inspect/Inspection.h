// SPDX-License-Identifier: Apache-2.0
//
// The content of a library, which `kiln inspect` prints as text (Words.h) and as a page (Page.h). Everything is read
// from the manifest (readManifest), so that an archive and a spec show the same; only the graph and the loop nests
// require a spec.
#pragma once

#include "llvm/Support/Error.h"
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

struct InspectedTensor {
  std::string name, type; // "tokens", "i32[tokens]"
};

struct InspectedExtent {
  std::string name, least; // `least`: an extent that this one must not be below; empty: none
  int64_t min = 0, max = 0;
};

/// A step of an entry at its largest extents (compiler/library/Execution.h).
struct InspectedStep {
  std::string kind, kernel, layer;
  std::vector<std::string> operands, results;
  double times = 1;
  double operations = 0, bytesRead = 0, bytesWritten = 0; // for one execution
  double operandBytes = 0;                                // for a step without a kernel
  std::optional<double> seconds;                          // total of all executions
  double share = 0;                                       // fraction of the entry's time

  double bytes() const { return bytesRead + bytesWritten; }
};

struct InspectedBuffer {
  int64_t offset = 0, bytes = 0;
  int64_t first = 0, last = 0;
  std::vector<std::string> values;
};

struct InspectedEntry {
  std::string name, batchOf;
  std::vector<InspectedExtent> extents;
  std::vector<InspectedTensor> inputs, outputs;
  int64_t arenaFixed = 0, arenaPerWorker = 0, stateBytes = 0; // over all targets of the library
  int64_t planBytes = 0, planLowerBound = 0;                  // for the target shown, without the states
  std::vector<InspectedStep> steps;
  std::vector<InspectedBuffer> buffers;
  bool isMeasured = false;    // whether its times are measured
  std::string listedAt;       // "rows=7": the extents of the listed steps; empty: the largest
  std::string measuredAt;     // the extents of the measured times, if known
  double measuredSeconds = 0; // of a call, which also takes time between its kernels; 0: unknown

  double operations() const;
  double bytes() const;
  /// Returns the time of a call: as measured, or the sum over the steps.
  double seconds() const;
};

struct InspectedKernel {
  std::string name, symbol, strategy, schedule, provenance, donor, shape, bounds, loops;
  std::vector<std::string> layers;
  int64_t textBytes = 0;
  // Only measured kernels have these: the speed-up over the default, and the slowdown compared with the best schedule.
  std::optional<double> gain, loss;
};

struct InspectedWeight {
  std::string name, type, stored; // "f32[768, 768]", "int8"
  int64_t copies = 1, bytes = 0;  // bytes of all copies, as stored for the target shown
};

/// A tensor that an op reads: the result of another node, or a weight.
struct GraphEdge {
  int64_t node = -1;
  std::string weight, type;
};

/// An op of the model as it was written, before optimisation.
struct GraphNode {
  std::string op, layer; // "linear", "h.{}.mlp.fc1"
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<GraphEdge> operands;
  std::vector<std::string> results;
};

/// The nodes from `first` to `last`, which are the body of a stack or a loop, and how many times it runs.
struct GraphLoop {
  std::string kind, times; // "repeat", "12"
  int64_t first = 0, last = 0;
};

struct InspectedGraph {
  std::vector<GraphNode> nodes; // in an order of execution
  std::vector<GraphLoop> loops;
};

/// The peak rates of a machine, per second.
struct PeakRates {
  double operations = 0, bytes = 0; // multiplications and additions; bytes that a copy reads and writes
  std::string source;               // "measured here on 1 thread"
};

struct Inspection {
  std::string name, target; // target: the one that is shown
  std::vector<std::string> targets;
  int64_t parameters = 0, packedBytes = 0, ranks = 1, stages = 1;
  std::vector<InspectedEntry> entries;
  std::vector<InspectedKernel> kernels;
  std::vector<InspectedWeight> weights;
  std::vector<InspectedGraph> graphs; // one per entry; none for an archive
  std::optional<PeakRates> rates;

  const InspectedKernel *findKernel(llvm::StringRef kernel) const;
};

/// Parses the manifest of a library for one of its targets, by default the first one. `file` is its name in error
/// messages.
llvm::Expected<Inspection> readManifest(llvm::StringRef text, llvm::StringRef file, llvm::StringRef target = "");

/// Returns the names of a manifest's targets.
llvm::Expected<std::vector<std::string>> readTargets(llvm::StringRef text, llvm::StringRef file);

/// Predicts the time of each step: the maximum of the times for its operations and its bytes at those rates.
void predictTimes(Inspection &inspection, const PeakRates &rates);

/// Returns the extents of the calls at which a table of times was measured, by name; the steps should be listed at
/// these extents. Fails if entries have different values of an extent.
llvm::Expected<std::map<std::string, int64_t>> extentsOfTimes(llvm::StringRef text, llvm::StringRef file);

/// Replaces the predicted times by those of a table, for the entries that the table has:
///   {"entries": [{"name": "forward", "extents": "tokens=64"}],
///    "kernels": [{"entry": "forward", "name": "linear_2", "seconds": 0.0012}]}
/// "entries" is optional: without it, the extents of the measurement are unknown. "seconds" is the total of all calls
/// of the kernel in a call of the entry. Fails if a kernel of such an entry is missing, and on names that the library
/// does not have.
llvm::Error takeTimes(Inspection &inspection, llvm::StringRef text, llvm::StringRef file);

} // namespace kiln
