// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/peers/OrtApi.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <functional>
#include <numeric>

namespace kiln::bench::ort {

namespace {

/// The minimum API version that has the functions used here.
constexpr std::uint32_t apiVersion = 11;
constexpr int logErrors = 3, allOptimizations = 99, deviceAllocator = 0, defaultMemory = 0;
constexpr int elementF32 = 1, elementI32 = 6;

struct Base {
  const Functions *(*getApi)(std::uint32_t version);
  const char *(*getVersion)();
};

[[noreturn]] void fail(const char *words) {
  std::fprintf(stderr, "error: ONNX Runtime: %s\n", words);
  std::exit(1);
}

/// The library, loaded once and never unloaded.
class Library {
public:
  static const Library *get() {
    static const Library only;
    return only.functions ? &only : nullptr;
  }
  static const Library &require() {
    if (const Library *library = get())
      return *library;
    fail("the library is not installed");
  }
  void check(Status *status) const {
    if (status)
      fail(functions->getErrorMessage(status));
  }

  const Functions *functions = nullptr;
  Environment *environment = nullptr;
  MemoryInfo *memory = nullptr;

private:
  Library() {
    void *library = dlopen(KILN_BENCH_ORT_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    auto base = library ? reinterpret_cast<const Base *(*)()>(dlsym(library, "OrtGetApiBase")) : nullptr;
    functions = base ? base()->getApi(apiVersion) : nullptr;
    if (!functions)
      return;
    check(functions->createEnvironment(logErrors, "kiln", &environment));
    check(functions->createCpuMemoryInfo(deviceAllocator, defaultMemory, &memory));
  }
};

} // namespace

Session::Session(const Model &model, const Options &options) {
  const Library &library = Library::require();
  const Functions &ort = *library.functions;
  SessionOptions *with = nullptr;
  library.check(ort.createSessionOptions(&with));
  library.check(ort.setGraphOptimizationLevel(with, allOptimizations));
  library.check(ort.setIntraOpThreads(with, options.threads));
  library.check(ort.setInterOpThreads(with, 1));
  if (!options.packsWeights)
    library.check(ort.addSessionConfigEntry(with, "session.disable_prepacking", "1"));
  library.check(model.path.empty() ? ort.createSessionFromArray(library.environment, model.bytes.data(),
                                                                model.bytes.size(), with, &handle)
                                   : ort.createSession(library.environment, model.path.c_str(), with, &handle));
  ort.releaseSessionOptions(with);
}

Session::~Session() {
  const Functions &ort = *Library::require().functions;
  for (Value *value : inputs)
    ort.releaseValue(value);
  for (Value *value : outputs)
    ort.releaseValue(value);
  ort.releaseSession(handle);
}

Value *Session::makeTensor(const void *data, std::size_t bytes, const std::vector<std::int64_t> &shape,
                           int elementType) {
  const Library &library = Library::require();
  Value *value = nullptr;
  library.check(library.functions->createTensorWithData(library.memory, const_cast<void *>(data), bytes, shape.data(),
                                                        shape.size(), elementType, &value));
  return value;
}

void Session::input(const std::string &name, std::span<const float> data, const std::vector<std::int64_t> &shape) {
  inputNames.push_back(name);
  inputs.push_back(makeTensor(data.data(), data.size_bytes(), shape, elementF32));
}

void Session::input(const std::string &name, std::span<const std::int32_t> data,
                    const std::vector<std::int64_t> &shape) {
  inputNames.push_back(name);
  inputs.push_back(makeTensor(data.data(), data.size_bytes(), shape, elementI32));
}

std::span<const float> Session::output(const std::string &name, const std::vector<std::int64_t> &shape) {
  auto count = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  const auto &data = *memory.emplace_back(std::make_unique<std::vector<float>>(count));
  outputNames.push_back(name);
  outputs.push_back(makeTensor(data.data(), data.size() * sizeof(float), shape, elementF32));
  return data;
}

void Session::run() {
  const Library &library = Library::require();
  std::vector<const char *> from, to;
  for (const std::string &name : inputNames)
    from.push_back(name.c_str());
  for (const std::string &name : outputNames)
    to.push_back(name.c_str());
  library.check(library.functions->run(handle, nullptr, from.data(), inputs.data(), from.size(), to.data(), to.size(),
                                       outputs.data()));
}

bool isInstalled() { return Library::get() != nullptr; }

} // namespace kiln::bench::ort
