// SPDX-License-Identifier: Apache-2.0
//
// A graph compiled and linked into this process as the library that a user would get: archive members with their
// symbols, weights bound from an image of a safetensors file, entries called through the run time. Or one for another
// CPU, linked into a program that an emulator runs.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "Emulator.h"
#include "TaskOrder.h"
#include "compiler/emit/Compile.h"
#include "compiler/interpreter/Storage.h"
#include "compiler/interpreter/Tensor.h"
#include "compiler/tuner/LinkedObjects.h"
#include "runtime/src/model.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace kiln::fuzz {

/// The elements of a tensor as a library has them in memory, and back.
std::vector<char> toBytes(const interpreter::Tensor &tensor);

/// How a library is called: by how many workers, in what order tasks are done, and what lies in memory before. A model
/// on a device has one worker.
struct CallStyle {
  /// Of a model on a device: where the tensors of a call are. Displaced: on the device, aligned to their elements only.
  enum class Tensors { OnHost, OnDevice, Displaced };
  TaskOrder order = TaskOrder::Serial;
  unsigned workers = 1;
  unsigned char poison = 0xff; // of outputs and of the arena but for its states
  Tensors tensors = Tensors::OnHost;
  bool fillsArena =
      true; // on a device; false: what a kernel reads there unwritten is a fault of the interpreter of PTX
};

/// How a graph is compiled.
struct CompileChoices {
  std::optional<std::uint64_t> scheduleSeed = std::nullopt; // kernels have schedules drawn from their search spaces
  bool checksMemory = false;
  bool isolatesKernels = false;
  std::string weights = {}; // how they are stored: "int8 except *w1=f16"; empty: as they are
  bool int8Rows = false;    // whether weights of int8 are multiplied by rows of int8
  bool isOrdered = false;
  RankChoices ranks = {};    // how many ranks and stages there are, and what they share
  std::string emulator = {}; // the script that links and runs models for another CPU; empty: they are for this one
};

class CompiledModel {
public:
  /// Fails with the compiler's words.
  static llvm::Expected<CompiledModel> compile(const Graph &graph, const std::string &target,
                                               const CompileChoices &choices = {});

  const ModelInterface &interface() const { return report.model; }
  /// Of all weights, as the model's code has them.
  uint64_t packedBytes() const { return report.variants.front().packedBytes; }
  /// How many kernels have another schedule than their default.
  int drawnSchedules() const { return drawn; }
  /// By the name in the weight file.
  using Weights = std::map<std::string, interpreter::Tensor>;
  /// Every tensor of the weight file: name, element type, shape.
  std::vector<std::pair<std::string, interpreter::Tensor>> weightShapes() const;
  /// Whether a weight is stored in fewer bits.
  bool isStored(const std::string &name) const { return storages.count(name) > 0; }
  /// Whether linear with that weight, whose outputs are along `dim`, takes rows of int8.
  bool takesInt8(const std::string &name, int dim) const;
  /// The numbers that stand for these in the model: of weights that are stored in fewer bits the rounded ones.
  Weights asStored(Weights weights) const;
  /// Creates the model on what it was compiled for, and gives it its weights. A process does so behind its last fork:
  /// a device does not survive one.
  llvm::Error bind(const Weights &weights);
  /// Of a model that trains, after bind: gives it first weights that follow from the seed.
  llvm::Error initialise(std::uint64_t seed);
  /// A bound weight by the name in the weight file, as it is now.
  llvm::Expected<interpreter::Tensor> read(const std::string &name, const interpreter::TensorShape &shape);
  bool isOnDevice() const { return report.variants.front().isOnDevice(); }
  bool isOfProcesses() const { return handles.size() > 1; }
  bool isEmulated() const { return !script.empty(); }
  /// Whether a call failed since the emulator itself did.
  bool hasBrokenEmulator() const { return emulator && emulator->isAtFault(); }

  using Buffers = std::vector<std::vector<char>>; // of an entry's inputs or outputs, in bytes
  /// One of those that an entry is called for together.
  struct Sequence {
    std::vector<char> states; // of the model, zero at first; a call goes on with them
    interpreter::Extents extents;
    Buffers inputs;
  };
  /// The entry that does for several sequences what this one does for one; nothing if it is not batched.
  std::optional<size_t> batchOf(size_t entry) const;

  /// An arena of its own, whose states are zero.
  class Session {
  public:
    Session(CompiledModel &model, CallStyle style);
    ~Session();
    /// The outputs' bytes; fails with the status' words. Inputs cannot be written, nothing outside of them be read.
    /// Ranks are threads, all of which must have the same outputs.
    llvm::Expected<Buffers> call(size_t entry, const interpreter::Extents &extents, const Buffers &inputs);
    const std::vector<char> &states() const { return held.front(); }
    std::vector<char> &states() { return held.front(); }
    /// Of a model that trains, on the host: what its header says of these.
    llvm::Error saveTraining(const std::string &path, const kiln_training_t &training) const;
    llvm::Expected<kiln_training_t> loadTraining(const std::string &path);
    llvm::Error swapAverage();
    llvm::Error beginTraining();
    /// The same for several sequences, of what a call of the entry is for one: their outputs. On the host.
    llvm::Expected<std::vector<Buffers>> callBatch(size_t entry, std::vector<Sequence> &sequences);

  private:
    llvm::Expected<Buffers> runOnHost(size_t entry, const interpreter::Extents &extents, const Buffers &inputs,
                                      llvm::function_ref<kiln_status_t(kiln_call_t &call, void *const *arguments)> run);
    /// Which one of the processes calls, and whom with.
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
  /// A function of the library, without the model's name: find<decltype(kiln_create)>("create").
  template <class Function> llvm::Expected<Function *> function(const char *name) {
    llvm::Expected<void *> address = linked->lookup(report.model.name + "_" + name);
    if (!address)
      return address.takeError();
    return reinterpret_cast<Function *>(*address);
  }

  CompileReport report;
  std::optional<LinkedObjects> linked; // none of an emulated one
  std::string script;
  std::unique_ptr<Emulator> emulator; // once weights are bound
  /// What a weight is stored as, and the dimension of its scales.
  std::map<std::string, interpreter::Storage> storages; // of those in fewer bits, by name in the weight file
  int drawn = 0;
  bool hasInt8Rows = false;
  uint32_t ranks = 1;
  std::vector<Handle> handles; // by process: all ranks of the first stage, those of the next one
  decltype(kiln_run) *run = nullptr;
  decltype(kiln_run_batch) *runBatch = nullptr;
  decltype(kiln_pool_create) *createPool = nullptr;
  decltype(kiln_pool_executor) *poolExecutor = nullptr;
  decltype(kiln_pool_destroy) *destroyPool = nullptr;
};

} // namespace kiln::fuzz
