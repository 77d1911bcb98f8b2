// SPDX-License-Identifier: Apache-2.0
//
// One model tried: compiled, run on random inputs for several extents, numbers of workers and orders of tasks, and
// compared with the interpreter.
#pragma once

#include <cstdint>
#include <string>

#include "RandomGraph.h"
#include "compiler/frontend/Import.h"

namespace kiln::fuzz {

struct Verdict {
  enum class Kind {
    Right,
    Refused, // by the compiler, with its words
    Failed,  // a status of the run time
    Wrong,   // other numbers than the interpreter's
    Unlike,  // other numbers for another number of workers, order of tasks or content of the arena
    Broken,  // the interpreter, or the trial itself, could not go on
    Crashed, // the process that tried it died
    Hung,
    PassedOver // it cannot be split among so many, or the emulator fails at it
  };
  Kind kind = Kind::Right;
  std::string words;
  // What was compared: elements, those of them whose bound is tight, and those that may be anything.
  std::int64_t elements = 0, tight = 0, undetermined = 0;
  std::int64_t schedules = 0; // drawn ones
  std::int64_t batches = 0;   // calls for several sequences
  std::int64_t together = 0;  // calls by several processes
};

/// What a trial does beside compiling with default schedules, running and comparing.
struct TrialOptions {
  bool checksMemory = false;    // the memory of each kernel is checked, which refuses some that are right
  bool isolatesKernels = false; // each kernel is compiled in a child of its own, of which a crash is no end
  int schedules = 0;            // so often it is compiled once more, each kernel with a schedule that is drawn, and run
  std::string weights = {};     // how they are stored, see weightsFor: "int8 except *w1=f16"; empty: as they are
  bool int8Rows = false;        // whether weights of int8 are multiplied by rows of int8, if there are any
  bool isOrdered = false;       // ordered kernels, which give the same bits with each schedule
  bool isBatched = false;       // entries are called for several sequences, too, where they may be
  RankChoices ranks = {};       // and stages that a model is split among; one that cannot be is not tried
  std::string emulator = {};    // the script that links and runs models for another CPU; empty: they are for this one

  bool isSplit() const { return ranks.isSplit() || ranks.stages > 1; }
};

const char *toString(Verdict::Kind kind);

/// The weights' choice without exceptions that name nothing of the graph that can be stored: the compiler refuses them.
std::string weightsFor(const Graph &graph, const std::string &choice);

/// Whether linear multiplies by a weight that is stored as int8 by that choice.
bool multipliesInt8(const Graph &graph, const std::string &choice);

/// False for a model that the front end says cannot be split among so many processes; it makes no kernel for that.
bool canBeSplit(const Graph &graph, const RankChoices &ranks);

/// The graph that is tried: the model's, with entries batched if they are to be.
Graph triedGraph(const RandomModel &model, const TrialOptions &options);

/// Tries the model on one instruction set. Inputs and weights follow from `seed`. May crash or hang as what is compiled
/// does: it is for a child process.
Verdict tryModel(const RandomModel &model, const std::string &target, std::uint64_t seed,
                 const TrialOptions &options = {});

} // namespace kiln::fuzz
