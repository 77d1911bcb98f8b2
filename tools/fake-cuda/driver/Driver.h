// SPDX-License-Identifier: Apache-2.0
//
// The driver's whole state, and the first and last steps of every exported function: enter() takes the lock, looks for
// an injected error, checks for initialisation and a usable context, and writes the call's record.
#pragma once

#include <cstdio>
#include <deque>
#include <mutex>
#include <new>
#include <set>
#include <string_view>

#include "CudaApi.h"
#include "Handles.h"
#include "Objects.h"

namespace kiln::fake {

struct Device {
  unsigned major = 9, minor = 0;
  std::size_t bytes = std::size_t(1) << 30, used = 0;
  std::shared_ptr<Context> primary;
  unsigned primaryReferences = 0;
  unsigned capability() const { return major * 10 + minor; }
  /// Whether it is a consumer GPU, which has less shared memory, threads and blocks per multiprocessor.
  bool small() const { return major == 12 || (major == 8 && (minor == 6 || minor == 9)); }
  /// Bytes of shared memory that a block may request.
  unsigned mostShared() const { return small() ? 101376 : major >= 9 ? 232448 : 166912; }
  unsigned threadsOfMultiprocessor() const { return small() ? 1536 : 2048; }
  unsigned blocksOfMultiprocessor() const { return small() ? 16 : 32; }
};

struct Configuration {
  std::vector<Device> devices{Device()};
  int version = 12040;
  std::set<std::string, std::less<>> absent;
  bool eager = false;
  std::uint64_t instructionLimit = 0;
};

struct Record {
  std::string function;
  CUresult result = CUDA_SUCCESS;
  std::uint64_t bytes = 0;
  CUstream stream = nullptr;
  std::string kernel;
  unsigned grid[3] = {}, block[3] = {}, cluster[3] = {};
  unsigned sharedBytes = 0;
};

struct Injection {
  std::string function;
  unsigned left; ///< calls up to and including the one that fails
  CUresult error;
};

struct Thread {
  std::uint64_t epoch = 0;
  std::vector<CUcontext> stack;
};

struct Driver {
  static Driver &get();
  Driver();
  /// Restores the state at the start of the process.
  void reset();

  std::mutex mutex;
  Configuration configuration;
  bool initialised = false;
  std::uint64_t epoch = 0; ///< number of resets: threads' context stacks from an earlier epoch are stale
  std::vector<Device> devices;
  std::uint64_t contextsMade = 0;
  std::deque<Thread>
      threads; ///< all threads of the process so far: a client may call while its own statics are destroyed

  Handles<CUcontext, Context> contexts;
  Handles<CUmodule, LoadedImage> modules;
  Handles<CUfunction, Function> functions;
  Handles<CUstream, Stream> streams;
  Handles<CUevent, Event> events;
  Handles<CUgraph, Graph> graphs;
  Handles<CUgraphExec, Graph> executables;
  Handles<CUlinkState, Link> links;
  std::map<const char *, std::shared_ptr<Pinned>> pinned;
  std::vector<std::shared_ptr<Capture>> captures;
  unsigned orphans = 0;

  std::deque<Record> records;
  std::map<std::string, std::size_t, std::less<>> counts;
  std::vector<Injection> injections;
  std::string failure;
  std::uint64_t kernels = 0, copies = 0, warpInstructions = 0;
  std::uint64_t now = 0; ///< nanoseconds; copies and kernels advance this clock
  std::FILE *log = nullptr;

  /// Returns the error to inject into this call, if any. "*" does not match "kernel".
  CUresult injected(std::string_view function);
  std::shared_ptr<Pinned> pinnedAt(const void *address, std::size_t bytes) const;
  /// Reports the failure to the test, to stderr and to the context, which is unusable from then on.
  void fail(Context &context, const Failure &failure);
};

/// Whether a real context would not survive the error.
bool isSticky(CUresult error);

/// Reads KILN_FAKE_CUDA_DEVICES and the other environment variables.
Configuration configurationOfEnvironment();
bool parseDevices(std::string_view text, std::vector<Device> &devices);
std::set<std::string, std::less<>> parseNames(std::string_view text);
/// Parses "cuMemAlloc_v2:3:2", which makes the third call return 2. Commas separate several injections.
std::vector<Injection> parseInjections(const char *text);

enum class Needs {
  nothing,
  driver,    ///< needs cuInit
  context,   ///< needs a current context without a sticky error
  anyContext ///< needs a current context, with or without a sticky error
};

struct Call {
  Driver &driver;
  Thread &thread;
  Record &record;
  Context *context = nullptr; ///< the current context, if the call needs one

  Call(Driver &driver, const char *function);
  CUresult before(Needs needs);
  CUresult after(CUresult result);

  /// Finds a stream, of any context without a sticky error; null and 1 are the legacy stream of the current context.
  CUresult find(CUstream handle, std::shared_ptr<Stream> &stream);
  /// Finds an object of the current context.
  template <class Handle, class Object>
  CUresult find(const Handles<Handle, Object> &handles, Handle handle, std::shared_ptr<Object> &object) {
    object = handles.find(handle);
    return object && object->context == context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  }
  Device &device() { return driver.devices[static_cast<std::size_t>(context->device)]; }
  /// Checks that a call which a capture cannot record is allowed in this thread. If it is not, captures are
  /// invalidated.
  CUresult allowUnsafe();
};

template <class Body> CUresult enter(const char *function, Needs needs, Body body) {
  Driver &driver = Driver::get();
  const std::lock_guard lock(driver.mutex);
  Call call(driver, function);
  CUresult result = call.before(needs);
  try {
    if (!result)
      result = body(call);
  } catch (const std::bad_alloc &) {
    result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  return call.after(result);
}

} // namespace kiln::fake
