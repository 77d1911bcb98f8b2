// SPDX-License-Identifier: Apache-2.0
//
// A graph that is compiled and linked into this process as the library that a user would get: archive members with
// their symbols, weights bound from the image of a safetensors file, entries called through the runtime. Or a graph
// that is compiled for another CPU and linked into a program that an emulator runs.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "Emulator.h"
#include "TaskOrder.h"
#include "compiler/driver/Compile.h"
#include "compiler/interpreter/Storage.h"
#include "compiler/interpreter/Tensor.h"
#include "compiler/tuner/LinkedObjects.h"
#include "runtime/src/core/model.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace kiln::fuzz {

/// Converts the elements of a tensor to and from a library's memory format.
std::vector<char> toBytes(const interpreter::Tensor &tensor);

/// How a library is called: number of workers, order of tasks, and initial memory contents. A model on a device has one
/// worker.
struct CallStyle {
  /// For a model on a device: where the tensors of a call are. Displaced: on the device, aligned to their elements
  /// only.
  enum class Tensors { OnHost, OnDevice, Displaced };
  TaskOrder order = TaskOrder::Serial;
  unsigned workers = 1;
  unsigned char poison = 0xff; // initial bytes of outputs, and of the arena except for its states
  Tensors tensors = Tensors::OnHost;
  bool fillsArena = true; // on a device; if false, the PTX interpreter reports reads of uninitialised arena memory
};

/// How a graph is compiled.
struct CompileChoices {
  std::optional<std::uint64_t> scheduleSeed = std::nullopt; // kernels have random schedules from their search spaces
  bool checksMemory = false;
  bool isolatesKernels = false;
  std::string weights = {}; // storage formats: "int8 except *w1=f16"; empty for none
  bool int8Rows = false;    // whether int8 weights are multiplied by int8 activations
  bool isBatchInvariant = false;
  RankChoices ranks = {};    // numbers of ranks and stages, and what they share
  std::string emulator = {}; // the script that links and runs models for another CPU; empty for this CPU
};

class CompiledModel {
public:
  /// Compiles the graph; fails with the compiler's diagnostics.
  static llvm::Expected<CompiledModel> compile(const Graph &graph, const std::string &target,
                                               const CompileChoices &choices = {});

  const ModelInterface &interface() const { return report.model; }
  /// Returns the total size of all weights in the model's packed formats.
  uint64_t packedBytes() const { return report.variants.front().packedBytes; }
  /// Returns the number of kernels with another schedule than the default.
  int drawnSchedules() const { return drawn; }
  /// Weights by their names in the weight file.
  using Weights = std::map<std::string, interpreter::Tensor>;
  /// Returns every tensor of the weight file: name, element type, shape.
  std::vector<std::pair<std::string, interpreter::Tensor>> weightShapes() const;
  /// Whether a weight is quantised, i.e. stored in fewer bits.
  bool isStored(const std::string &name) const { return storages.count(name) > 0; }
  /// Whether a linear layer with that weight, whose outputs are along `dim`, quantises its activations to int8.
  bool takesInt8(const std::string &name, int dim) const;
  /// Returns the values that the model computes with: those of quantised weights are rounded.
  Weights asStored(Weights weights) const;
  /// Creates the model on the target it was compiled for, and binds its weights. A process must fork before this call,
  /// since a device does not survive a fork.
  llvm::Error bind(const Weights &weights);
  /// For a model that trains, after bind: initialises its weights as a function of the seed.
  llvm::Error initialise(std::uint64_t seed);
  /// Returns the current values of a bound weight, by its name in the weight file.
  llvm::Expected<interpreter::Tensor> read(const std::string &name, const interpreter::TensorShape &shape);
  bool isOnDevice() const { return report.variants.front().isOnDevice(); }
  bool isOfProcesses() const { return handles.size() > 1; }
  bool isEmulated() const { return !script.empty(); }
  /// Whether a call failed because of the emulator itself.
  bool hasBrokenEmulator() const { return emulator && emulator->isAtFault(); }

  using Buffers = std::vector<std::vector<char>>; // the inputs or outputs of an entry, as bytes
  /// One of the sequences of a batched call.
  struct Sequence {
    std::vector<char> states; // of the model, initially zero; a call updates them
    interpreter::Extents extents;
    Buffers inputs;
  };
  /// Returns the batched version of this entry, or nothing if it is not batched.
  std::optional<size_t> batchOf(size_t entry) const;

  /// A session with its own arena, whose states are initially zero.
  class Session {
  public:
    Session(CompiledModel &model, CallStyle style);
    ~Session();
    /// Returns the outputs' bytes; fails with the status' message. Inputs are read-only, and memory outside of them is
    /// inaccessible. Ranks are threads, all of which must return the same outputs.
    llvm::Expected<Buffers> call(size_t entry, const interpreter::Extents &extents, const Buffers &inputs);
    const std::vector<char> &states() const { return held.front(); }
    std::vector<char> &states() { return held.front(); }
    /// For a model that trains, on the host: as the functions of its header.
    llvm::Error saveTraining(const std::string &path, const kiln_training_t &training) const;
    llvm::Expected<kiln_training_t> loadTraining(const std::string &path);
    llvm::Error swapAverage();
    llvm::Error beginTraining();
    /// Calls the batched version of the entry for several sequences, on the host; returns their outputs.
    llvm::Expected<std::vector<Buffers>> callBatch(size_t entry, std::vector<Sequence> &sequences);

  private:
    llvm::Expected<Buffers> runOnHost(size_t entry, const interpreter::Extents &extents, const Buffers &inputs,
                                      llvm::function_ref<kiln_status_t(kiln_call_t &call, void *const *arguments)> run);
    /// Which process calls, and its communicators.
    struct Process {
      size_t number = 0;
      const kiln_communicator_t *ranks = nullptr, *stages = nullptr;
    };
    llvm::Expected<Buffers> callOnHost(size_t entry, const interpreter::Extents &extents, const Buffers &inputs,
                                       Process process);
    llvm::Expected<Buffers> callOnProcesses(size_t entry, const interpreter::Extents &extents, const Buffers &inputs);
    llvm::Expected<Buffers> callEmulated(size_t entry, const interpreter::Extents &extents, const Buffers &inputs);
    llvm::Expected<Buffers> callOnDevice(size_t entry, const interpreter::Extents &extents, const Buffers &inputs);

    CompiledModel &model;
    CallStyle style;
    std::vector<std::vector<char>> held; // states, by process
    kiln_pool_t *pool = nullptr;
  };

private:
  struct Destroyer {
    decltype(kiln_destroy) *destroy = nullptr;
    void operator()(kiln_model_t *model) const { destroy(model); }
  };
  using Handle = std::unique_ptr<kiln_model_t, Destroyer>;

  explicit CompiledModel(CompileReport report);
  /// Links the library into this process.
  llvm::Error link();
  /// Returns a function of the library, by its name without the model's: find<decltype(kiln_create)>("create").
  template <class Function> llvm::Expected<Function *> function(const char *name) {
    llvm::Expected<void *> address = linked->lookup(report.model.name + "_" + name);
    if (!address)
      return address.takeError();
    return reinterpret_cast<Function *>(*address);
  }

  CompileReport report;
  std::optional<LinkedObjects> linked; // absent for an emulated model
  std::string script;
  std::unique_ptr<Emulator> emulator; // once weights are bound
  /// The storage format of a weight, and the dimension of its scales.
  std::map<std::string, interpreter::Storage> storages; // of quantised weights, by name in the weight file
  int drawn = 0;
  bool hasInt8Rows = false;
  uint32_t ranks = 1;
  std::vector<Handle> handles; // by process: all ranks of the first stage, then those of the next one
  decltype(kiln_run) *run = nullptr;
  decltype(kiln_run_batch) *runBatch = nullptr;
  decltype(kiln_pool_create) *createPool = nullptr;
  decltype(kiln_pool_executor) *poolExecutor = nullptr;
  decltype(kiln_pool_destroy) *destroyPool = nullptr;
};

} // namespace kiln::fuzz
