// SPDX-License-Identifier: Apache-2.0
#include "cuda_stub.h"

#include "cuda/cuda_driver.h"

#include <cstdlib>
#include <utility>

using namespace kiln_test;

namespace {

// Contexts are numbers: the primary context of device n is n + 1; tests may use any others.
thread_local std::vector<kiln_cuda_context_t> Contexts;

using Graph = std::vector<std::function<void()>>;
struct Link {
  std::string code;
};

struct Function {
  std::string name;
  const StubKernel *kernel;
};

StubState &state() {
  static StubState the;
  return the;
}

/// Whether the wildcard "*" excludes the function: functions that release something must always succeed.
bool isRelease(std::string_view name) {
  for (const char *word : {"Pop", "Free", "Unload", "Destroy", "Release"})
    if (name.find(word) != name.npos)
      return true;
  return false;
}

/// Records the call; returns non-zero if it must fail.
int enter(const char *name, bool needsContext = true) {
  StubState &s = state();
  s.calls.push_back(name);
  if ((s.failing == name || (s.failing == "*" && !isRelease(name))) && s.failAfter-- == 0) {
    s.failing.clear();
    return s.result;
  }
  return needsContext && Contexts.empty() ? 201 : 0;
}

bool isMemory(uint64_t address, size_t bytes) {
  for (auto [begin, size] : state().memory)
    if (address >= begin && address + bytes <= begin + size)
      return true;
  return false;
}

/// Runs the work now, or, during a capture, when the graph is launched.
int enqueue(kiln_cuda_queue_t stream, std::function<void()> work) {
  auto *queue = reinterpret_cast<StubStream *>(stream);
  if (!queue)
    return 400; // the runtime must not use the legacy stream
  if (queue->isCapturing)
    queue->graph.push_back(std::move(work));
  else
    state().used.insert(stream), work();
  return 0;
}

int launch(kiln_cuda_entry_t entry, kiln_cuda_queue_t stream, StubLaunch launch, void **parameters) {
  const StubKernel *kernel = reinterpret_cast<Function *>(entry)->kernel;
  for (unsigned blocks : launch.blocks)
    if (blocks == 0)
      return 1;
  for (size_t i = 0; i < kernel->parameterBytes.size(); ++i) {
    const char *bytes = static_cast<const char *>(parameters[i]);
    launch.parameters.emplace_back(bytes, bytes + kernel->parameterBytes[i]);
  }
  return enqueue(stream, [kernel, launch] { kernel->run(launch); });
}

} // namespace

#define ENTER(...)                                                                                                     \
  const std::lock_guard guard(state().lock);                                                                           \
  if (int failed = enter(__func__ __VA_OPT__(, ) __VA_ARGS__))                                                         \
  return failed

extern "C" {
StubState *kiln_stub_state() { return &state(); }
std::vector<kiln_cuda_context_t> *kiln_stub_contexts() { return &Contexts; }

int cuInit(unsigned) {
  ENTER(false);
  return state().initResult;
}
int cuGetErrorName(int result, const char **name) {
  *name = result == 700   ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : result == 100 ? "CUDA_ERROR_NO_DEVICE"
          : result == 218 ? "CUDA_ERROR_INVALID_PTX"
          : result == 2   ? "CUDA_ERROR_OUT_OF_MEMORY"
          : result == 999 ? "CUDA_ERROR_UNKNOWN"
                          : nullptr;
  return *name ? 0 : 1;
}
int cuGetErrorString(int result, const char **text) {
  *text = result == 999 ? "unknown error" : result == 700 ? "an illegal memory access was encountered" : nullptr;
  return *text ? 0 : 1;
}
int cuDriverGetVersion(int *version) {
  ENTER(false);
  *version = state().version;
  return 0;
}
int cuDeviceGetCount(int *count) {
  ENTER(false);
  *count = state().devices;
  return 0;
}
int cuDeviceGet(int *device, int ordinal) {
  ENTER(false);
  *device = ordinal;
  return 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int) {
  ENTER(false);
  *value = attribute == 75 ? state().major : attribute == 76 ? state().minor : -1;
  return 0;
}
int cuDevicePrimaryCtxRetain(kiln_cuda_context_t *context, int device) {
  ENTER(false);
  *context = reinterpret_cast<kiln_cuda_context_t>(static_cast<uintptr_t>(device + 1));
  ++state().retained;
  state().taken.push_back(device);
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int) {
  ENTER(false);
  --state().retained;
  return 0;
}
int cuCtxPushCurrent_v2(kiln_cuda_context_t context) {
  ENTER(false);
  Contexts.push_back(context);
  return 0;
}
int cuCtxPopCurrent_v2(kiln_cuda_context_t *context) {
  ENTER();
  *context = Contexts.back();
  Contexts.pop_back();
  return 0;
}
int cuCtxGetDevice(int *device) {
  ENTER();
  *device = 0;
  return 0;
}
int cuModuleLoadDataEx(kiln_cuda_loaded_t *loaded, const void *image, unsigned count, int *options, void **values) {
  ENTER();
  const auto *text = static_cast<const char *>(image);
  for (unsigned i = 0; i < count; ++i)
    if (options[i] == KILN_CUDA_ERROR_LOG)
      std::strcpy(static_cast<char *>(values[i]), state().log.c_str());
  if (text == state().newerPtx)
    return KILN_CUDA_UNSUPPORTED_PTX_VERSION;
  if (!state().log.empty())
    return 218;
  state().loaded.emplace_back(text);
  *loaded = reinterpret_cast<kiln_cuda_loaded_t>(new std::vector<Function *>);
  ++state().modules;
  return 0;
}
int cuModuleUnload(kiln_cuda_loaded_t loaded) {
  ENTER();
  auto *functions = reinterpret_cast<std::vector<Function *> *>(loaded);
  for (Function *function : *functions)
    delete function;
  delete functions;
  --state().modules;
  return 0;
}
int cuModuleGetFunction(kiln_cuda_entry_t *function, kiln_cuda_loaded_t loaded, const char *name) {
  ENTER();
  auto found = state().kernels.find(name);
  if (found == state().kernels.end())
    return 500;
  auto *made = reinterpret_cast<std::vector<Function *> *>(loaded)->emplace_back(new Function{name, &found->second});
  *function = reinterpret_cast<kiln_cuda_entry_t>(made);
  return 0;
}
int cuFuncSetAttribute(kiln_cuda_entry_t function, int attribute, int value) {
  ENTER();
  if (attribute != KILN_CUDA_MAX_DYNAMIC_SHARED_BYTES)
    return 1;
  state().sharedBytes[reinterpret_cast<Function *>(function)->name] = value;
  return 0;
}
int cuLinkCreate_v2(unsigned, int *, void **, kiln_cuda_link_t *link) {
  ENTER();
  *link = reinterpret_cast<kiln_cuda_link_t>(new Link);
  ++state().links;
  return 0;
}
int cuLinkAddData_v2(kiln_cuda_link_t link, int type, const void *data, size_t bytes, const char *, unsigned, int *,
                     void **) {
  ENTER();
  const auto *text = static_cast<const char *>(data);
  if (type != KILN_CUDA_INPUT_PTX || bytes != std::strlen(text) + 1)
    return 1;
  if (text == state().newerPtx)
    return KILN_CUDA_UNSUPPORTED_PTX_VERSION;
  reinterpret_cast<Link *>(link)->code = "code of " + std::string(text);
  return 0;
}
int cuLinkComplete(kiln_cuda_link_t link, void **cubin, size_t *bytes) {
  ENTER();
  std::string &code = reinterpret_cast<Link *>(link)->code;
  *cubin = code.data();
  *bytes = code.size() + 1;
  return 0;
}
int cuLinkDestroy(kiln_cuda_link_t link) {
  ENTER();
  delete reinterpret_cast<Link *>(link);
  --state().links;
  return 0;
}
int cuMemAlloc_v2(kiln_cuda_address_t *address, size_t bytes) {
  ENTER();
  if (bytes == 0)
    return 1;
  void *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(memory, 0xA5, bytes);
  *address = reinterpret_cast<uintptr_t>(memory) + DeviceBase;
  state().memory[*address] = bytes;
  return 0;
}
int cuMemFree_v2(kiln_cuda_address_t address) {
  ENTER();
  if (!state().memory.erase(address))
    return 1;
  std::free(onHost<void>(address));
  return 0;
}
int cuMemHostAlloc(void **memory, size_t bytes, unsigned) {
  ENTER();
  *memory = std::malloc(bytes);
  ++state().pinned;
  return 0;
}
int cuMemFreeHost(void *memory) {
  ENTER();
  std::free(memory);
  --state().pinned;
  return 0;
}
int cuMemcpyHtoDAsync_v2(kiln_cuda_address_t to, const void *from, size_t bytes, kiln_cuda_queue_t stream) {
  ENTER();
  if (!isMemory(to, bytes))
    return 1;
  return enqueue(stream, [=] { std::memcpy(onHost<void>(to), from, bytes); });
}
int cuMemcpyDtoHAsync_v2(void *to, kiln_cuda_address_t from, size_t bytes, kiln_cuda_queue_t stream) {
  ENTER();
  if (!isMemory(from, bytes))
    return 1;
  return enqueue(stream, [=] { std::memcpy(to, onHost<void>(from), bytes); });
}
int cuMemcpyDtoDAsync_v2(kiln_cuda_address_t to, kiln_cuda_address_t from, size_t bytes, kiln_cuda_queue_t stream) {
  ENTER();
  if (!isMemory(from, bytes) || !isMemory(to, bytes))
    return 1;
  return enqueue(stream, [=] { std::memcpy(onHost<void>(to), onHost<void>(from), bytes); });
}
int cuMemcpy2DAsync_v2(const kiln_cuda_copy_2d_t *copy, kiln_cuda_queue_t stream) {
  ENTER();
  const kiln_cuda_copy_2d_t c = *copy;
  if (c.from.memory != KILN_CUDA_MEMORY_OF_DEVICE || c.to.memory != KILN_CUDA_MEMORY_OF_DEVICE ||
      c.from.pitch < c.width || c.to.pitch < c.width ||
      !isMemory(c.from.device, (c.height - 1) * c.from.pitch + c.width) ||
      !isMemory(c.to.device, (c.height - 1) * c.to.pitch + c.width))
    return 1;
  return enqueue(stream, [c] {
    for (size_t row = 0; row < c.height; ++row)
      std::memcpy(onHost<char>(c.to.device) + row * c.to.pitch, onHost<char>(c.from.device) + row * c.from.pitch,
                  c.width);
  });
}
int cuMemsetD8Async(kiln_cuda_address_t to, unsigned char value, size_t bytes, kiln_cuda_queue_t stream) {
  ENTER();
  if (!isMemory(to, bytes))
    return 1;
  return enqueue(stream, [=] { std::memset(onHost<void>(to), value, bytes); });
}
int cuStreamCreate(kiln_cuda_queue_t *stream, unsigned flags) {
  ENTER();
  *stream = reinterpret_cast<kiln_cuda_queue_t>(new StubStream);
  ++state().streams;
  return flags == KILN_CUDA_NON_BLOCKING ? 0 : 1;
}
int cuStreamDestroy_v2(kiln_cuda_queue_t stream) {
  ENTER();
  delete reinterpret_cast<StubStream *>(stream);
  --state().streams;
  return 0;
}
int cuStreamSynchronize(kiln_cuda_queue_t stream) {
  ENTER();
  return stream && !reinterpret_cast<StubStream *>(stream)->isCapturing ? 0 : 900;
}
int cuStreamIsCapturing(kiln_cuda_queue_t stream, int *status) {
  ENTER();
  *status = reinterpret_cast<StubStream *>(stream)->isCapturing;
  return 0;
}
int cuStreamBeginCapture_v2(kiln_cuda_queue_t stream, int mode) {
  ENTER();
  auto *queue = reinterpret_cast<StubStream *>(stream);
  if (mode != KILN_CUDA_CAPTURE_THREAD_LOCAL || queue->isCapturing)
    return 401;
  queue->isCapturing = true;
  state().recorders.insert(stream);
  return 0;
}
int cuStreamEndCapture(kiln_cuda_queue_t stream, kiln_cuda_recording_t *graph) {
  const std::lock_guard guard(state().lock);
  auto *queue = reinterpret_cast<StubStream *>(stream);
  queue->isCapturing = false; // after an error, too
  const Graph recorded = std::exchange(queue->graph, {});
  if (int failed = enter(__func__))
    return failed;
  *graph = reinterpret_cast<kiln_cuda_recording_t>(new Graph(recorded));
  ++state().graphs;
  return 0;
}
int cuGraphDestroy(kiln_cuda_recording_t graph) {
  ENTER();
  delete reinterpret_cast<Graph *>(graph);
  --state().graphs;
  return 0;
}
int cuGraphLaunch(kiln_cuda_executable_t executable, kiln_cuda_queue_t stream) {
  ENTER();
  for (const auto &work : *reinterpret_cast<Graph *>(executable))
    if (int failed = enqueue(stream, work))
      return failed;
  return 0;
}
int cuGraphExecDestroy(kiln_cuda_executable_t executable) {
  ENTER();
  delete reinterpret_cast<Graph *>(executable);
  --state().executables;
  return 0;
}
int cuLaunchKernel(kiln_cuda_entry_t function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned, unsigned,
                   unsigned sharedBytes, kiln_cuda_queue_t stream, void **parameters, void **) {
  ENTER();
  return launch(function, stream, {{x, y, z}, threads, sharedBytes, 1, false, {}}, parameters);
}
#ifndef KILN_STUB_IS_OLD // a driver before CUDA 11.4 and 11.8
int cuGraphInstantiateWithFlags(kiln_cuda_executable_t *executable, kiln_cuda_recording_t graph, unsigned long long) {
  ENTER();
  *executable = reinterpret_cast<kiln_cuda_executable_t>(new Graph(*reinterpret_cast<Graph *>(graph)));
  ++state().executables;
  return 0;
}
int cuLaunchKernelEx(const kiln_cuda_launch_t *how, kiln_cuda_entry_t function, void **parameters, void **) {
  ENTER();
  kiln_test::StubLaunch made = {
      {how->blocks[0], how->blocks[1], how->blocks[2]}, how->threads[0], how->shared_bytes, 1, false, {}};
  for (unsigned i = 0; i < how->attribute_count; ++i) {
    const kiln_cuda_launch_attribute_t &attribute = how->attributes[i];
    if (attribute.id == KILN_CUDA_CLUSTER_DIMENSION)
      made.cluster = attribute.value.cluster[0];
    else if (attribute.id == KILN_CUDA_PROGRAMMATIC_SERIALIZATION)
      made.isDependentLaunch = attribute.value.is_dependent_launch == 1;
    else
      return 1;
  }
  return launch(function, how->stream, made, parameters);
}
#endif
}
