// SPDX-License-Identifier: Apache-2.0
//
// The part of ONNX Runtime's C API that the benchmarks need. Its npm package ships the shared library without headers,
// so the function table is declared here: the library only ever appends to the table, and its sources have asserted
// these positions since version 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kiln::bench::ort {

struct Status;
struct Environment;
struct SessionHandle;
struct Value;
struct MemoryInfo;
struct SessionOptions;

/// The start of the table. Functions that return a Status return null on success.
struct Functions {
  void *unused0[2];
  const char *(*getErrorMessage)(const Status *);
  Status *(*createEnvironment)(int logLevel, const char *name, Environment **);
  void *unused4[3];
  Status *(*createSession)(const Environment *, const char *path, const SessionOptions *, SessionHandle **);
  Status *(*createSessionFromArray)(const Environment *, const void *model, std::size_t bytes, const SessionOptions *,
                                    SessionHandle **);
  Status *(*run)(SessionHandle *, const void *options, const char *const *inputNames, const Value *const *inputs,
                 std::size_t inputCount, const char *const *outputNames, std::size_t outputCount, Value **outputs);
  Status *(*createSessionOptions)(SessionOptions **);
  void *unused11[12];
  Status *(*setGraphOptimizationLevel)(SessionOptions *, int level);
  Status *(*setIntraOpThreads)(SessionOptions *, int count);
  Status *(*setInterOpThreads)(SessionOptions *, int count);
  void *unused26[23];
  Status *(*createTensorWithData)(const MemoryInfo *, void *data, std::size_t bytes, const std::int64_t *shape,
                                  std::size_t rank, int elementType, Value **);
  void *unused50[19];
  Status *(*createCpuMemoryInfo)(int allocator, int memoryType, MemoryInfo **);
  void *unused70[22];
  void (*releaseEnvironment)(Environment *);
  void (*releaseStatus)(Status *);
  void (*releaseMemoryInfo)(MemoryInfo *);
  void (*releaseSession)(SessionHandle *);
  void (*releaseValue)(Value *);
  void *unused97[3];
  void (*releaseSessionOptions)(SessionOptions *);
  void *unused101[29];
  Status *(*addSessionConfigEntry)(SessionOptions *, const char *key, const char *value);
};
static_assert(offsetof(Functions, getErrorMessage) == 2 * sizeof(void *));
static_assert(offsetof(Functions, createSession) == 7 * sizeof(void *));
static_assert(offsetof(Functions, setGraphOptimizationLevel) == 23 * sizeof(void *));
static_assert(offsetof(Functions, createTensorWithData) == 49 * sizeof(void *));
static_assert(offsetof(Functions, createCpuMemoryInfo) == 69 * sizeof(void *));
static_assert(offsetof(Functions, releaseEnvironment) == 92 * sizeof(void *));
static_assert(offsetof(Functions, releaseSessionOptions) == 100 * sizeof(void *));
static_assert(offsetof(Functions, addSessionConfigEntry) == 130 * sizeof(void *));

/// The source of a model: a file, or the bytes of one.
struct Model {
  std::string path, bytes;
};

struct Options {
  int threads = 1;
  bool packsWeights = true;
};

/// A loaded model and its tensors. A failure is reported and ends the program.
class Session {
public:
  Session(const Model &model, const Options &options);
  ~Session();
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  /// The data must outlive the session.
  void input(const std::string &name, std::span<const float> data, const std::vector<std::int64_t> &shape);
  void input(const std::string &name, std::span<const std::int32_t> data, const std::vector<std::int64_t> &shape);
  /// Returns memory that the session owns.
  std::span<const float> output(const std::string &name, const std::vector<std::int64_t> &shape);
  void run();

private:
  Value *makeTensor(const void *data, std::size_t bytes, const std::vector<std::int64_t> &shape, int elementType);

  SessionHandle *handle = nullptr;
  std::vector<std::string> inputNames, outputNames;
  std::vector<Value *> inputs, outputs;
  std::vector<std::unique_ptr<std::vector<float>>> memory;
};

/// Whether the library is present in the build folder.
bool isInstalled();

} // namespace kiln::bench::ort
