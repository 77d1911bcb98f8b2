// SPDX-License-Identifier: Apache-2.0
//
// What a generated library is, seen from outside: its dimensions, entry points and weights (from the graph), what of
// its inputs is checked (from the ops), and for each instruction set where things lie (from code generation). The
// headers, the manifest and the descriptor are written from this.
#pragma once

#include "compiler/emit/Execution.h"
#include "compiler/schedule/Choose.h"
#include "kiln/graph.h"
#include "targets/target.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

/// Bounds on the values of an i32 input: [minimum, limit).
struct ValueCheck {
  int64_t minimum = 0;
  Dim limit{0};
};

struct ArgumentInterface {
  std::string name;
  ElementType element;
  std::vector<Dim> shape;
  bool isOutput = false;
  std::optional<ValueCheck> check; // compiler/emit/ValueChecks.h
  bool isOfLast = false;           // the last stage of several alone writes it
};

struct EntryInterface {
  std::string name;
  std::vector<Symbol> symbols;              // those its arguments and states mention, in the model's order
  std::vector<ArgumentInterface> arguments; // inputs, then outputs
  // Of what a batched entry is for several sequences: that entry's symbols, which each sequence has its own values of.
  std::vector<Symbol> ownSymbols;
  std::string ownRows; // the one of them whose sum over the sequences are the call's rows; empty: there is none
  std::string single;  // that entry's name; empty: this is no such entry

  uint64_t stateBytes = 0; // at the beginning of an arena for it
  bool changesWeights = false;
  std::vector<std::string> states; // names of those that it reads or writes

  bool isBatch() const { return !single.empty(); }
};

/// Elements along an axis of a tensor: rank r has `extent` of them, from first + r / group * step on.
struct WeightSection {
  int64_t first = 0, extent = 0, step = 0, group = 1;
};

/// What a rank has of a tensor: along a dimension, which is `extent` long in the file, sections one behind another.
struct WeightSlice {
  int64_t dim = 0, extent = 0;
  std::vector<WeightSection> sections;
};

/// A tensor of the weight file, or a rank's slice of it. With copies > 1 its name holds "{}", once for each stack
/// around it.
struct WeightInterface {
  std::string name;
  ElementType element;
  std::vector<int64_t> shape; // of the slice, if it is one
  int64_t copies = 1;
  std::vector<int64_t> layers;        // of the stacks, outermost first; the copies are their product
  bool isVariable = false;            // may be written between calls
  Initial initial = Initial::zeros(); // constant, uniform or normal
  std::optional<WeightSlice> slice = std::nullopt;
  int64_t allCopies = 0; // of stages that have some each, of which `copies` are the most; 0: each has these
  uint32_t absent = 0;   // bits: stages with that role do without it, as KILN_WEIGHT_ABSENT says

  std::vector<int64_t> fileShape() const;
  int64_t fileCopies() const { return allCopies ? allCopies : copies; }
};

/// A tensor that lives between calls; with copies > 1 its name holds "{}" for the layers. Copy c lies at offsets[0] + c
/// * stride bytes from the beginning of the arena; of several stages at their role's offset. A model's own states lie
/// in the same places on all stages.
struct StateInterface {
  std::string name;
  ElementType element;
  std::vector<int64_t> shape;
  int64_t copies = 1;
  std::vector<int64_t> layers;        // as of a weight
  std::vector<uint64_t> offsets = {}; // one a role
  uint64_t stride = 0;
  bool isAppended = false;
  int64_t room = 0; // rows in memory, of a state that slides (kiln.slide): its own begin at one of them; 0: it does not
  std::optional<WeightSlice> slice = std::nullopt; // as of a weight
  int64_t parts = 1;                               // replicas have one each, of all elements in a row
  int64_t allCopies = 0;                           // as of a weight
  uint32_t absent = 0;

  /// As it lies in an arena.
  std::vector<int64_t> ownShape() const;
  uint64_t rowBytes() const;
  /// Where the number of the row that a state that slides begins at is, in a copy: an i64 after all rows.
  uint64_t positionOffset() const;
  int64_t fileCopies() const { return allCopies ? allCopies : copies; }
};

struct ModelInterface {
  std::string name;
  std::vector<Symbol> symbols; // in order of first use by the entries' inputs, then by their states
  std::vector<EntryInterface> entries;
  std::vector<WeightInterface> weights;
  std::vector<StateInterface> states;
  std::vector<StateInterface> moments; // of optimisers, behind the states in arenas of entries that train
  int64_t parameters = 0;              // of all ranks together
  int64_t ranks = 1;                   // that call entries together
  int64_t replicas = 1;                // of a model that is trained
  int64_t stages = 1;                  // that have some of the layers each
  std::vector<int64_t> roles = {0};    // of stages: the first stage with each (compiler/transforms/CutStages.h)
  bool isForSeveral() const { return ranks > 1 || replicas > 1 || stages > 1; }
  /// The role of a stage.
  uint32_t roleOf(int64_t stage) const;
  /// How many copies of a tensor a stage with the role has.
  template <class Tensor> int64_t copiesOf(const Tensor &tensor, uint32_t role) const {
    return copiesOf(tensor.absent, tensor.allCopies, tensor.copies, role);
  }
  int64_t copiesOf(uint32_t absent, int64_t allCopies, int64_t copies, uint32_t role) const;
  /// Whether each replica has a part of what optimisers keep.
  bool sharesStates() const;
  /// Whether no process has all of the model.
  bool hasParts() const { return ranks > 1 || stages > 1 || sharesStates(); }
  uint64_t stateBytes = 0; // at the beginning of each arena
  bool keepsMoments() const { return trainingBytes != stateBytes; }
  uint64_t trainingBytes = 0; // at the beginning of those of entries that train: states, then moments; at most
  bool embedsWeights = false; // they lie in the archive
  bool hasSelfTest = false;
  uint64_t digest = 0;           // changes with the archive
  uint64_t stateBytesPerRow = 0; // of them, what one row more in each of the appended states takes

  /// Whether an entry changes weights.
  bool trains() const;
  /// Gives states and moments their places and says how many bytes they are, by their shapes.
  void placeStates();
  const StateInterface *findState(const std::string &state) const;
  const WeightInterface *findWeight(const std::string &weight) const;
};

/// Reads the interface off a trace, without the checks of values, which need its ops.
ModelInterface describeInterface(const Graph &graph, std::string name);

/// What is wrong with values of extents, or nothing: some entry has each, within its bounds.
std::string checkExtents(const ModelInterface &model, const std::map<std::string, int64_t> &extents);

/// kiln_placement_t of runtime/src/model.h.
struct WeightPlacement {
  uint64_t offset = 0, stride = 0;
  uint32_t tile = 0, dim = 0;
  uint64_t shift = 0;
  ElementType element = ElementType::f32; // as it is stored
  uint64_t scales = 0;                    // from the first element, in bytes; 0: there are none
  uint32_t group = 0;                     // elements of the depth with one scale; 0: all have one
  uint64_t zeros = 0;                     // as scales
};

/// Bytes of one copy of a weight where it is placed, without padding: its elements, and the scales of its outputs.
uint64_t storedBytes(const WeightInterface &weight, const WeightPlacement &place);

/// A kernel of one instruction set, for the manifest and `kiln inspect`.
struct KernelSummary {
  std::string function;            // its name in the module
  std::vector<std::string> layers; // that call it: "h.*.mlp.fc1"
  KernelKey key;
  ScheduleChoice choice;
  std::string symbol;
  std::string strategy;
  SchedulePoint schedule;
  bool isFallback = false; // for fewer instruction sets: KernelCompiler::fallback
  uint64_t textBytes = 0;
  std::string cost;  // what bounds it, computed: KernelCompiler::printCost, if it was asked for
  std::string loops; // its loop nest: KernelText::Loops, if that was asked for
};

/// One entry compiled for one instruction set.
struct EntryCode {
  std::string symbol; // of the body
  uint64_t planBytes = 0, planLowerBound = 0;
  uint64_t scratchBytes = 0, taskBytes = 0; // of the worker that starts kernels, of each other one
  uint64_t stagingBytes = 0;                // of the arguments' copies in a device's memory; 0 on a CPU
  std::vector<ExecutionStep> steps = {};
  std::vector<PlannedBuffer> buffers = {};
  size_t entry = 0;          // its number in the model
  std::string function = ""; // the entry's name; of a stage's role "forward_first"
};

/// A weight that is computed of others when they are bound.
struct DerivedWeight {
  std::string name;                           // of the kiln.parameter
  uint64_t offset = 0, stride = 0, bytes = 0; // of the first copy, from one to the next, of each
  uint32_t copies = 1;
};

/// Everything compiled for one instruction set.
struct Variant {
  std::string target;
  uint64_t features = 0;                   // KILN_CPU_ bits that a CPU must have
  uint32_t memorySpace = 0;                // a KILN_MEMORY_ value
  std::vector<WeightPlacement> placements; // one a weight; of several stages those of each role, one behind another
  std::vector<DerivedWeight> derived;
  std::optional<EntryCode> deriving;   // of the function that computes them
  std::string derivation;              // that function and its kernels, as text
  std::string derivationDigest;        // of what it computes, whatever its kernels are
  std::vector<uint64_t> packedBytesOf; // by role
  uint64_t packedBytes = 0;            // the most of them
  std::string backend;                 // a symbol of the run time; empty: none
  std::string constants;               // bytes for the device; empty on a CPU
  std::vector<std::string> modules;    // symbols of kiln_cuda_module_t
  std::vector<EntryCode> entries;      // of several stages those of each role, one behind another
  std::vector<KernelSummary> kernels;

  bool isOnDevice() const { return !backend.empty(); }
};

/// What stands after the entries: a function without arguments that computes derived weights.
EntryInterface derivingInterface();

/// Whether one of them is for a device.
bool hasDevice(const std::vector<Variant> &variants);

/// Of the measurements that the schedules of all variants rest on; "none" if all are analytic defaults.
std::string tuningDigest(const std::vector<Variant> &variants);

/// Of a copy of each argument at its largest, each rounded to the arena's alignment.
uint64_t stagingBytes(const EntryInterface &entry);

/// An arena for `workers` workers holds fixed + workers * perWorker bytes; the maximum over variants and roles. The
/// formula is that of kiln_arena_fixed_bytes and kiln_arena_worker_bytes in runtime/src/model.h.
struct ArenaBytes {
  uint64_t fixed = 0, perWorker = 0;
};
ArenaBytes arenaBytes(const std::vector<Variant> &variants, size_t entry);

/// Weights of stacks in stacks become one weight for each layer of the outer ones, since the run time counts one "{}" a
/// name: "groups.{}.inner.{}.weight" becomes "groups.0.inner.{}.weight" and so on. The last step: sources are no longer
/// found.
void unfoldNestedStacks(ModelInterface &model, std::vector<Variant> &variants);

/// Of a model that trains, what is at the beginning of an arena for that: its states, "state:hidden", and the
/// optimisers', with nested stacks unfolded likewise.
std::vector<StateInterface> trainingStates(const ModelInterface &model);

/// A Dim as a C expression over its symbols, such as "2 * batch * tokens + 1".
std::string toString(const Dim &dim);

/// The one of an entry's extents that this one must not be below; null: none.
const Symbol *findLeast(const std::vector<Symbol> &symbols, const Symbol &symbol);
/// The same with each symbol as `name` gives it.
std::string toString(const Dim &dim, llvm::function_ref<std::string(const Symbol &)> name);

} // namespace kiln
