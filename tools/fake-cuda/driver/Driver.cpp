// SPDX-License-Identifier: Apache-2.0
//
// The driver's state, and the first and last steps of each call. The caller holds the lock (enter() in Driver.h).
#include "Driver.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>

namespace kiln::fake {
namespace {

Thread &currentThread(Driver &driver) {
  static thread_local Thread *const thread = &driver.threads.emplace_back();
  if (thread->epoch != driver.epoch)
    *thread = {driver.epoch, {}};
  return *thread;
}

/// Returns the first driver version that has the function.
int sinceVersion(std::string_view function) {
  if (function == "cuLaunchKernelEx")
    return 11080;
  if (function == "cuTensorMapEncodeTiled")
    return 12000;
  return 0;
}

std::string lineOf(const Record &record) {
  std::string line = fmt::format("{} {}", record.function, static_cast<int>(record.result));
  if (record.bytes)
    line += fmt::format(" bytes {}", record.bytes);
  if (record.stream)
    line += fmt::format(" stream {}", fmt::ptr(record.stream));
  if (!record.kernel.empty())
    line += fmt::format(" kernel {} grid {}x{}x{} block {}x{}x{} cluster {}x{}x{} shared {}", record.kernel,
                        record.grid[0], record.grid[1], record.grid[2], record.block[0], record.block[1],
                        record.block[2], record.cluster[0], record.cluster[1], record.cluster[2], record.sharedBytes);
  return line + "\n";
}

} // namespace

Driver &Driver::get() {
  static auto *driver = new Driver; // never destroyed, because threads may call until the process ends
  return *driver;
}

Driver::Driver() { reset(); }

void Driver::reset() {
  for (const auto &capture : captures)
    capture->nodes.clear();
  for (const auto &[handle, context] : contexts.all())
    for (const auto &stream : context->streams) {
      stream->drop();
      stream->capture = nullptr; // its nodes are already cleared
    }
  contexts = {}, modules = {}, functions = {}, streams = {}, events = {}, graphs = {}, executables = {}, links = {};
  pinned.clear(), captures.clear(), records.clear(), counts.clear(), injections.clear(), failure.clear();
  orphans = 0;
  kernels = copies = warpInstructions = now = 0;
  contextsMade = 0;
  initialised = false;
  ++epoch;
  configuration = configurationOfEnvironment();
  devices = configuration.devices;
  if (const char *injection = std::getenv("KILN_FAKE_CUDA_INJECT"))
    injections = parseInjections(injection);
  if (log)
    std::fclose(log);
  const char *path = std::getenv("KILN_FAKE_CUDA_LOG");
  log = path ? std::fopen(path, "ae") : nullptr;
}

CUresult Driver::injected(std::string_view function) {
  CUresult error = CUDA_SUCCESS;
  for (Injection &injection : injections)
    if ((injection.function == function || (injection.function == "*" && function != "kernel")) &&
        --injection.left == 0 && !error)
      error = injection.error;
  std::erase_if(injections, [](const Injection &injection) { return injection.left == 0; });
  return error;
}

std::shared_ptr<Pinned> Driver::pinnedAt(const void *address, std::size_t bytes) const {
  const auto *at = static_cast<const char *>(address);
  auto found = pinned.upper_bound(at);
  if (found == pinned.begin())
    return nullptr;
  --found;
  const auto offset = static_cast<std::size_t>(at - found->first);
  return offset < found->second->bytes && bytes <= found->second->bytes - offset ? found->second : nullptr;
}

void Driver::fail(Context &context, const Failure &what) {
  failure = what.words;
  std::fprintf(stderr, "fake CUDA driver: %s\n", what.words.c_str());
  context.sticky = what.code;
  for (const auto &stream : context.streams)
    stream->drop();
}

bool isSticky(CUresult error) {
  return error == CUDA_ERROR_ILLEGAL_ADDRESS || error == CUDA_ERROR_LAUNCH_TIMEOUT || error == CUDA_ERROR_ASSERT ||
         (error >= CUDA_ERROR_HARDWARE_STACK_ERROR && error <= CUDA_ERROR_LAUNCH_FAILED);
}

Call::Call(Driver &driver, const char *function)
    : driver(driver), thread(currentThread(driver)), record(driver.records.emplace_back()) {
  record.function = function;
  ++driver.counts[function];
}

CUresult Call::before(Needs needs) {
  const std::shared_ptr<Context> current = thread.stack.empty() ? nullptr : driver.contexts.find(thread.stack.back());
  if (const CUresult error = driver.injected(record.function)) {
    if (current && isSticky(error) && !current->sticky)
      driver.fail(*current, {error, fmt::format("an error injected into {}", record.function)});
    return error;
  }
  if (driver.configuration.absent.contains(record.function) ||
      driver.configuration.version < sinceVersion(record.function))
    return CUDA_ERROR_NOT_SUPPORTED;
  if (needs == Needs::nothing)
    return CUDA_SUCCESS;
  if (!driver.initialised)
    return CUDA_ERROR_NOT_INITIALIZED;
  if (needs == Needs::driver)
    return CUDA_SUCCESS;
  if (thread.stack.empty())
    return CUDA_ERROR_INVALID_CONTEXT;
  if (!current)
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  context = current.get();
  return needs == Needs::context ? context->sticky : CUDA_SUCCESS;
}

CUresult Call::after(CUresult result) {
  record.result = result;
  if (driver.log) {
    std::fputs(lineOf(record).c_str(), driver.log);
    std::fflush(driver.log);
  }
  return result;
}

CUresult Call::find(CUstream handle, std::shared_ptr<Stream> &stream) {
  record.stream = handle;
  if (!handle || handle == reinterpret_cast<CUstream>(1))
    stream = context->legacy;
  else if (handle == reinterpret_cast<CUstream>(2))
    return CUDA_ERROR_NOT_SUPPORTED; // the per-thread default stream
  else if (stream = driver.streams.find(handle); !stream)
    return CUDA_ERROR_INVALID_HANDLE;
  return stream->context->sticky;
}

CUresult Call::allowUnsafe() {
  CUresult result = CUDA_SUCCESS;
  for (const auto &capture : driver.captures)
    if (capture->mode == captureGlobal ||
        (capture->mode == captureThreadLocal && capture->thread == std::this_thread::get_id())) {
      capture->invalidated = true;
      result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  return result;
}

} // namespace kiln::fake
