// SPDX-License-Identifier: Apache-2.0
//
// Describes a generated library from the outside: its dimensions, entry points and weights (from the graph), the value
// checks of its inputs (from the ops), and for each instruction set the placement of tensors (from code generation).
// The headers, the manifest and the descriptor are written from this. Weights and states are those of one process.
#pragma once

#include "compiler/library/Execution.h"
#include "compiler/library/ParallelLayout.h"
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

/// The bounds of the values of an i32 input: [minimum, limit).
struct ValueCheck {
  int64_t minimum = 0;
  Dim limit{0};
};

struct ArgumentInterface {
  std::string name;
  ElementType element;
  std::vector<Dim> shape;
  bool isOutput = false;
  std::optional<ValueCheck> check; // compiler/hostcode/ValueChecks.h
};

struct EntryInterface {
  std::string name;
  std::vector<Symbol> symbols;              // symbols of its arguments and states, in the model's order
  std::vector<ArgumentInterface> arguments; // inputs, then outputs
  // For batched entries: the symbols of the single-sequence entry. Each sequence supplies its own values.
  std::vector<Symbol> ownSymbols;
  // The symbol in ownSymbols whose sum over the sequences is the number of rows of the call; empty: there is none.
  std::string ownRows;
  std::string single; // name of the single-sequence entry; empty: the entry is not batched

  uint64_t stateBytes = 0; // at the beginning of the entry's arena
  bool changesWeights = false;
  std::vector<std::string> states; // names of the states that the entry reads or writes

  bool isBatch() const { return !single.empty(); }
};

/// A function that the program defines and entries call (kiln::custom).
struct CustomInterface {
  std::string name;
  std::vector<Symbol> symbols; // of its tensors' extents, in the order of their first use: its first arguments
  std::vector<ArgumentInterface> arguments; // operands, then results
  Dim workspace{0};                         // bytes; 0: it has no such argument
  bool isCalled = false;
};

/// A tensor of the weight file. With copies > 1 its name contains "{}", once for each stack around it.
struct WeightInterface {
  std::string name;
  ElementType element;
  std::vector<int64_t> shape;
  int64_t copies = 1;
  std::vector<int64_t> layers;        // layer counts of the stacks, outermost first; `copies` is their product
  bool isVariable = false;            // whether it may be written between calls
  Initial initial = Initial::zeros(); // constant, uniform or normal
};

/// A tensor that persists between calls. With copies > 1 its name contains "{}" for the layers. Copy c is stored at
/// offset + c * stride bytes from the beginning of the arena.
struct StateInterface {
  std::string name;
  ElementType element;
  std::vector<int64_t> shape;
  int64_t copies = 1;
  std::vector<int64_t> layers; // as for a weight
  uint64_t offset = 0, stride = 0;
  bool isAppended = false;
  /// For a sliding state (kiln.slide), the rows that fit in its memory; the state's rows begin at one of them. 0: it
  /// does not slide.
  int64_t room = 0;

  uint64_t rowBytes() const;
  /// Returns the offset, in a copy of a sliding state, of the i64 that holds the number of its first row. It follows
  /// all rows.
  uint64_t positionOffset() const;
};

struct ModelInterface {
  std::string name;
  std::vector<Symbol> symbols; // in order of first use by the entries' inputs, then by their states
  std::vector<EntryInterface> entries;
  std::vector<CustomInterface> functions; // sorted by name
  std::vector<WeightInterface> weights;
  std::vector<StateInterface> states;
  std::vector<StateInterface>
      optimizerStates;    // optimiser state, which follows the states in the arenas of entries that train
  int64_t parameters = 0; // of the whole model
  std::optional<ParallelLayout> parallel; // of a library for several processes
  uint64_t stateBytes = 0;                // at the beginning of each arena
  bool hasOptimizerState() const { return trainingBytes != stateBytes; }
  /// Bytes at the beginning of the arenas of entries that train, for states and then optimiser state; the maximum over
  /// processes.
  uint64_t trainingBytes = 0;
  bool embedsWeights = false; // whether the archive contains the weights
  bool hasSelfTest = false;
  uint64_t digest = 0;           // changes whenever the archive changes
  uint64_t stateBytesPerRow = 0; // the part of stateBytes that one more row in each of the appended states takes

  /// Whether some entry changes weights.
  bool trains() const;
  /// Assigns offsets to states and optimiser state by their shapes, and computes the total bytes.
  void placeStates();
  const StateInterface *findState(const std::string &state) const;
  const WeightInterface *findWeight(const std::string &weight) const;
};

/// Describes the interface of a trace, without the value checks, which need its ops.
ModelInterface describeInterface(const Graph &graph, std::string name);

/// Returns what is wrong with values of extents, or an empty string: some entry must have each extent, and the value
/// must be within its bounds.
std::string checkExtents(const ModelInterface &model, const std::map<std::string, int64_t> &extents);

/// Corresponds to kiln_placement_t of runtime/src/core/model.h.
struct WeightPlacement {
  uint64_t offset = 0, stride = 0;
  uint32_t tile = 0, dim = 0;
  uint64_t shift = 0;
  ElementType element = ElementType::f32; // as it is stored
  uint64_t scales = 0;                    // offset in bytes from the first element; 0: none
  uint32_t group = 0;                     // as in kiln_format_arrays
  uint64_t zeros = 0;                     // zero points or sums: an offset as for scales
};

/// Returns the bytes of one copy of a weight in its place, without padding: its elements, and the scales of its
/// outputs.
uint64_t storedBytes(const WeightInterface &weight, const WeightPlacement &place);

/// A kernel of one instruction set, for the manifest and `kiln inspect`.
struct KernelSummary {
  std::string function;            // its name in the module
  std::vector<std::string> layers; // the scopes that call it: "h.*.mlp.fc1"
  KernelKey key;
  ScheduleChoice choice;
  std::string symbol;
  std::string strategy;
  ScheduleConfig schedule;
  bool isFallback = false; // compiled for fewer instruction sets: KernelCompiler::fallback
  uint64_t textBytes = 0;
  std::string cost;  // computed performance bounds: KernelCompiler::printCost, if CompileOptions::showsCosts
  std::string loops; // loop nest: KernelText::Loops, if the target is CompileOptions::loopsOf
};

/// One entry compiled for one instruction set.
struct EntryCode {
  std::string symbol; // symbol of the body
  uint64_t planBytes = 0, planLowerBound = 0;
  uint64_t scratchBytes = 0, taskBytes = 0; // for the worker that starts kernels, and for each other worker
  uint64_t stagingBytes = 0;                // for the copies of the arguments in a device's memory; 0 on a CPU
  std::vector<ExecutionStep> steps = {};
  std::vector<PlannedBuffer> buffers = {};
  size_t entry = 0;          // its index in the model
  std::string function = ""; // the entry's name; for a stage role, a name such as "forward_first"
};

/// A weight that is computed from other weights when those are bound.
struct DerivedWeight {
  std::string name;                           // name of the kiln.parameter
  uint64_t offset = 0, stride = 0, bytes = 0; // offset of the first copy, distance between copies, and size of a copy
  uint32_t copies = 1;
};

/// Everything that is compiled for one instruction set.
struct Variant {
  std::string target;
  uint64_t features = 0;                   // KILN_CPU_ bits that a CPU must have
  uint32_t memorySpace = 0;                // a KILN_MEMORY_ value
  std::vector<WeightPlacement> placements; // one per weight; with a ParallelLayout, those of all roles in sequence
  std::vector<DerivedWeight> derived;
  std::optional<EntryCode> deriving;   // code of the function that computes derived weights
  std::string derivation;              // that function and its kernels, as text
  std::string derivationDigest;        // digest of the computation, independent of its kernels
  std::vector<uint64_t> packedBytesOf; // per role of the ParallelLayout
  uint64_t packedBytes = 0;            // the maximum over roles
  std::string backend;                 // a symbol of the runtime; empty: none
  std::string constants;               // bytes for the device; empty on a CPU
  std::vector<std::string> modules;    // symbols of kiln_cuda_module_t
  std::vector<EntryCode> entries;      // with a ParallelLayout, those of all roles in sequence
  std::vector<KernelSummary> kernels;

  bool isOnDevice() const { return !backend.empty(); }
};

/// Returns the interface of the function after the entries, which has no arguments and computes derived weights.
EntryInterface derivingInterface();

/// Whether some variant is for a device.
bool hasDevice(const std::vector<Variant> &variants);

/// Returns the digest of the measurements that the schedules of all variants were chosen by; "none" if all are analytic
/// defaults.
std::string tuningDigest(const std::vector<Variant> &variants);

/// Returns the bytes of a copy of each argument at its largest size, each rounded to the arena's alignment.
uint64_t stagingBytes(const EntryInterface &entry);

/// An arena for `workers` workers holds fixed + workers * perWorker bytes; each is the maximum over variants and roles.
/// The formula is that of kiln_arena_fixed_bytes and kiln_arena_worker_bytes in runtime/src/core/model.h.
struct ArenaBytes {
  uint64_t fixed = 0, perWorker = 0;
};
ArenaBytes arenaBytes(const std::vector<Variant> &variants, size_t entry);

/// Replaces a weight of nested stacks by one weight for each layer of the outer stacks, since the runtime supports one
/// "{}" per name: "groups.{}.inner.{}.weight" becomes "groups.0.inner.{}.weight" and so on. This must be the last step:
/// afterwards findWeight no longer finds the sources of a kiln.parameter.
void unfoldNestedStacks(ModelInterface &model, std::vector<Variant> &variants);

/// Returns the states with one for each layer in place of those of patterns of layers.
std::vector<StateInterface> nameStates(const std::vector<StateInterface> &states);

/// A tensor at the beginning of an arena for training.
struct TrainingState {
  StateInterface state;
  std::optional<TensorLayout> layout; // if the model has a ParallelLayout
};

/// Returns these tensors: the states, named "state:hidden", and the optimiser state, with nested stacks unfolded as
/// above. Empty unless the model trains.
std::vector<TrainingState> trainingStates(const ModelInterface &model);

/// Returns a Dim as a C expression over its symbols, such as "2 * batch * tokens + 1".
std::string toString(const Dim &dim);

/// Returns the extent of the entry that this one must not be below, or null.
const Symbol *findLeast(const std::vector<Symbol> &symbols, const Symbol &symbol);
/// Returns a Dim as a C expression in which `name` spells each symbol.
std::string toString(const Dim &dim, llvm::function_ref<std::string(const Symbol &)> name);

} // namespace kiln
