// SPDX-License-Identifier: Apache-2.0
//
// What a library holds, as `kiln inspect` tells it in words (Words.h) and as a page (Page.h). Everything comes from the
// manifest (readManifest), so that an archive and a spec say the same, but for the graph and the loop nests, which only
// a spec has.
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
  std::string name, least; // another extent that it is at least, if there is one
  int64_t min = 0, max = 0;
};

/// A step of an entry at its largest extents: compiler/emit/Execution.h.
struct InspectedStep {
  std::string kind, kernel, layer;
  std::vector<std::string> operands, results;
  double times = 1;
  double operations = 0, bytesRead = 0, bytesWritten = 0; // of one time
  double operandBytes = 0;                                // of a step without a kernel
  std::optional<double> seconds;                          // of all times
  double share = 0;                                       // of the entry's

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
  int64_t arenaFixed = 0, arenaPerWorker = 0, stateBytes = 0; // of the library
  int64_t planBytes = 0, planLowerBound = 0;                  // of the target shown, behind the states
  std::vector<InspectedStep> steps;
  std::vector<InspectedBuffer> buffers;
  bool isMeasured = false; // whether its seconds are
  std::string listedAt;    // "rows=7": the extents that steps are listed at; empty: the largest
  std::string measuredAt;  // those that its seconds were measured at, if that is known

  double operations() const;
  double bytes() const;
  double seconds() const;
};

struct InspectedKernel {
  std::string name, symbol, strategy, schedule, provenance, donor, shape, bounds, loops;
  std::vector<std::string> layers;
  int64_t textBytes = 0;
  std::optional<double> gain, predictedLoss;
};

struct InspectedWeight {
  std::string name, type, stored; // "f32[768, 768]", "int8"
  int64_t copies = 1, bytes = 0;  // bytes of all copies, as the target shown stores them
};

/// A tensor that an op reads: what another node leaves, or a weight.
struct GraphEdge {
  int64_t node = -1;
  std::string weight, type;
};

/// An op of the model as it was written, before anything is optimised.
struct GraphNode {
  std::string op, layer; // "linear", "h.{}.mlp.fc1"
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<GraphEdge> operands;
  std::vector<std::string> results;
};

/// How often the body of a stack or a loop runs: the nodes from `first` to `last`.
struct GraphLoop {
  std::string kind, times; // "repeat", "12"
  int64_t first = 0, last = 0;
};

struct InspectedGraph {
  std::vector<GraphNode> nodes; // in an order of execution
  std::vector<GraphLoop> loops;
};

/// What a machine does at best in a second.
struct PeakRates {
  double operations = 0, bytes = 0; // multiplications and additions; bytes that a copy reads and writes
  std::string source;               // "measured here on 1 thread"
};

struct Inspection {
  std::string name, target; // the one that is shown
  std::vector<std::string> targets;
  int64_t parameters = 0, packedBytes = 0, ranks = 1, stages = 1;
  std::vector<InspectedEntry> entries;
  std::vector<InspectedKernel> kernels;
  std::vector<InspectedWeight> weights;
  std::vector<InspectedGraph> graphs; // one an entry; none from an archive
  std::optional<PeakRates> rates;

  const InspectedKernel *findKernel(llvm::StringRef kernel) const;
};

/// The library of a manifest, for one of its targets; `file` is what errors call it. Without a target the first one is
/// shown.
llvm::Expected<Inspection> readManifest(llvm::StringRef text, llvm::StringRef file, llvm::StringRef target = "");

/// The names of a manifest's targets.
llvm::Expected<std::vector<std::string>> readTargets(llvm::StringRef text, llvm::StringRef file);

/// What each step takes: the longer of its operations and its bytes at those rates.
void predictTimes(Inspection &inspection, const PeakRates &rates);

/// The extents of the calls that a table of times was measured at, by name: what steps are to be listed at. Fails where
/// entries differ in one.
llvm::Expected<std::map<std::string, int64_t>> extentsOfTimes(llvm::StringRef text, llvm::StringRef file);

/// Takes the seconds of a table in their place, for the entries that the table has:
///   {"entries": [{"name": "forward", "extents": "tokens=64"}],
///    "kernels": [{"entry": "forward", "name": "linear_2", "seconds": 0.0012}]}
/// Entries may be left out: then it is not known at which extents they were measured.
/// `seconds` is of all calls of the kernel in a call of the entry. Fails if a kernel of such an entry is missing, and
/// on names that the library does not have.
llvm::Error takeTimes(Inspection &inspection, llvm::StringRef text, llvm::StringRef file);

} // namespace kiln
