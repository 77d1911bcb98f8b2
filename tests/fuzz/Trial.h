// SPDX-License-Identifier: Apache-2.0
//
// The test of one model: it is compiled, run on random inputs for several extents, numbers of workers and orders of
// tasks, and compared with the interpreter.
#pragma once

#include <cstdint>
#include <string>

#include "RandomGraph.h"
#include "compiler/pipeline/ImportModel.h"

namespace kiln::fuzz {

struct Verdict {
  enum class Kind {
    Right,
    Refused, // by the compiler, with its diagnostics
    Failed,  // the runtime returned an error status
    Wrong,   // results differ from the interpreter's
    Unlike,  // results differ between numbers of workers, orders of tasks or initial contents of the arena
    Broken,  // the interpreter or the test itself failed
    Crashed, // the process died
    Hung,
    PassedOver // the model cannot be split as required, or the emulator fails
  };
  Kind kind = Kind::Right;
  std::string words;
  // Statistics of the comparison: elements, those with a tight error bound, and those with an undetermined value.
  std::int64_t elements = 0, tight = 0, undetermined = 0;
  std::int64_t schedules = 0; // random schedules
  std::int64_t batches = 0;   // calls for several sequences
  std::int64_t together = 0;  // calls by several processes
};

/// What a trial does in addition to compiling with default schedules, running and comparing.
struct TrialOptions {
  bool checksMemory = false;     // checks the memory accesses of each kernel, which refuses some correct kernels
  bool isolatesKernels = false;  // compiles each kernel in a separate child process, whose crash is tolerated
  int schedules = 0;             // the number of further compilations with a random schedule for each kernel
  std::string weights = {};      // storage formats, see weightsFor: "int8 except *w1=f16"; empty for none
  bool int8Rows = false;         // whether int8 weights, if any, are multiplied by int8 activations
  bool isBatchInvariant = false; // batch-invariant kernels, whose results are bit-identical with every schedule
  bool isBatched = false;        // also calls entries for several sequences, where that is possible
  RankChoices ranks = {};        // ranks and stages to split a model among; a model that cannot be split is skipped
  std::string emulator = {};     // the script that links and runs models for another CPU; empty for this CPU

  bool isSplit() const { return ranks.isSplit() || ranks.stages > 1; }
};

const char *toString(Verdict::Kind kind);

/// Returns the storage formats without exceptions that match no storable weight of the graph, which the compiler
/// refuses.
std::string weightsFor(const Graph &graph, const std::string &choice);

/// Whether, with these storage formats, a linear layer multiplies by an int8 weight.
bool multipliesInt8(const Graph &graph, const std::string &choice);

/// Returns false if the front end refuses to split the model among these processes; compiles no kernel.
bool canBeSplit(const Graph &graph, const RankChoices &ranks);

/// Returns the graph to test: the model's, with batched entries if the options say so.
Graph triedGraph(const RandomModel &model, const TrialOptions &options);

/// Tests the model on one instruction set. Inputs and weights are functions of `seed`. It may crash or hang if the
/// compiled code does, so it must run in a child process.
Verdict tryModel(const RandomModel &model, const std::string &target, std::uint64_t seed,
                 const TrialOptions &options = {});

} // namespace kiln::fuzz
