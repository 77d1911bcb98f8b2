// SPDX-License-Identifier: Apache-2.0
//
// The driver's whole state, and what every exported function does first and last: it takes the lock, looks for an
// injected error, for initialisation and a usable context, and writes its record.
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
  /// The ones for games have less of some things.
  bool small() const { return major == 12 || (major == 8 && (minor == 6 || minor == 9)); }
  /// Bytes of shared memory that a block may ask for.
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
  unsigned left; ///< calls before it, and its own
  CUresult error;
};

struct Thread {
  std::uint64_t epoch = 0;
  std::vector<CUcontext> stack;
};

struct Driver {
  static Driver &get();
  Driver();
  /// As at the start of the process.
  void reset();

  std::mutex mutex;
  Configuration configuration;
  bool initialised = false;
  std::uint64_t epoch = 0; ///< of resets: threads' stacks of contexts are of one
  std::vector<Device> devices;
  std::uint64_t contextsMade = 0;
  std::deque<Thread> threads; ///< of the process so far: a client may call while its own statics are destroyed

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
  std::uint64_t now = 0; ///< nanoseconds of a clock that work moves on
  std::FILE *log = nullptr;

  /// The error that is injected here, if any. "kernel" is not among the functions that "*" means.
  CUresult injected(std::string_view function);
  std::shared_ptr<Pinned> pinnedAt(const void *address, std::size_t bytes) const;
  /// The words go to the test, to stderr, and to the context, which is of no use from here on.
  void fail(Context &context, const Failure &failure);
};

/// Errors that no real context survives.
bool isSticky(CUresult error);

/// KILN_FAKE_CUDA_DEVICES and the like.
Configuration configurationOfEnvironment();
bool parseDevices(std::string_view text, std::vector<Device> &devices);
std::set<std::string, std::less<>> parseNames(std::string_view text);
/// "cuMemAlloc_v2:3:2": the third call returns 2. Several with commas between.
std::vector<Injection> parseInjections(const char *text);

enum class Needs {
  nothing,
  driver,    ///< cuInit
  context,   ///< a current one that works
  anyContext ///< a current one, whatever has happened to it
};

struct Call {
  Driver &driver;
  Thread &thread;
  Record &record;
  Context *context = nullptr; ///< the current one, if the call needs one

  Call(Driver &driver, const char *function);
  CUresult before(Needs needs);
  CUresult after(CUresult result);

  /// Streams may be of any context that works; null and 1 are the legacy one of the current context.
  CUresult find(CUstream handle, std::shared_ptr<Stream> &stream);
  /// Of an object of the current context.
  template <class Handle, class Object>
  CUresult find(const Handles<Handle, Object> &handles, Handle handle, std::shared_ptr<Object> &object) {
    object = handles.find(handle);
    return object && object->context == context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  }
  Device &device() { return driver.devices[static_cast<std::size_t>(context->device)]; }
  /// That a call which a capture would not see is allowed here and now: otherwise captures are invalidated.
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
