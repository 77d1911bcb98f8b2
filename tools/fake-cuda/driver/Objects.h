// SPDX-License-Identifier: Apache-2.0
//
// The objects that handles stand for: contexts, streams and their queued work, events, modules, captures and graphs.
// They are accessed under the driver's lock only.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "CudaTypes.h"
#include "Memory.h"
#include "Module.h"

namespace kiln::fake {

struct Context;
struct Driver;
struct Stream;
struct Capture;

/// The error of work that failed, with the message for the test.
struct Failure {
  CUresult code = CUDA_SUCCESS;
  std::string words;
  explicit operator bool() const { return code != CUDA_SUCCESS; }
};

/// Work that a stream runs, or a node of a graph.
struct Work {
  enum class Kind { kernel, copy, graph, marker };
  Kind kind = Kind::marker;
  /// Runs in the stream's context. Empty for graphs and for markers that only wait.
  std::function<Failure(Driver &, Context &)> run;
  std::shared_ptr<const std::vector<Work>> nodes; ///< the nodes of a graph, in an order that respects their edges
};

/// A position in a stream: its first `count` items.
struct Point {
  std::shared_ptr<Stream> stream;
  std::uint64_t count = 0;
  bool reached() const;
};

struct Item {
  Work work;
  std::vector<Point> after;
};

struct Stream {
  Context *context = nullptr; ///< null after its destruction
  bool blocking = true;       ///< ordered with the legacy stream
  bool destroyed = false;     ///< the handle is destroyed; the queued work still runs
  std::uint64_t submitted = 0, completed = 0;
  std::deque<Item> items;
  std::shared_ptr<Capture> capture;
  void drop() {
    items.clear();
    completed = submitted;
  }
};

inline bool Point::reached() const { return stream->completed >= count; }

/// A vector clock: for each stream, how many of its nodes come before. Detects forks and joins in a capture.
using Clock = std::map<const Stream *, std::uint64_t>;
inline void merge(Clock &into, const Clock &from) {
  for (const auto &[stream, count] : from)
    into[stream] = std::max(into[stream], count);
}

struct Capture {
  int mode = 0;
  std::thread::id thread;
  const Stream *origin = nullptr;
  Context *context = nullptr;
  bool invalidated = false, ended = false;
  std::vector<Work> nodes;
  std::map<const Stream *, Clock> clocks; ///< the clocks of the participating streams
};

struct Event {
  Context *context = nullptr;
  bool timing = true;
  std::optional<Point> recorded;
  std::shared_ptr<std::uint64_t> time; ///< nanoseconds; written when the record runs
  std::shared_ptr<Capture> capture;    ///< the capture in which it was last recorded
  Clock clock;
};

struct Graph {
  Context *context = nullptr;
  std::shared_ptr<const std::vector<Work>> nodes;
  std::optional<Point> launched; ///< by the last launch: an executable graph does not overlap with itself
};

struct LoadedImage {
  Context *context = nullptr;
  std::optional<ptx::LoadedModule> code;
  int target = 0; ///< 90 for sm_90
  bool unloaded = false;
  std::map<std::string, CUfunction, std::less<>> functions;
};

struct Function {
  Context *context = nullptr;
  std::shared_ptr<LoadedImage> module;
  const ptx::Entry *entry = nullptr;
  unsigned maxDynamicShared = 0;
  bool nonPortableCluster = false;
};

struct JitOptions {
  void **values = nullptr;
  char *log[2] = {};           ///< for information and for errors
  std::size_t size[2] = {};    ///< bytes of the client's buffers
  int sizeIndex[2] = {-1, -1}; ///< index of the option that receives the number of bytes written
  void write(bool error, const std::string &words) const;
};

struct Link {
  Context *context = nullptr;
  JitOptions options;
  std::string text;
  std::vector<char> cubin;
};

struct Pinned {
  Context *context = nullptr;
  std::size_t bytes = 0;
  void *data = nullptr;
  Pinned(Context *context, std::size_t bytes);
  ~Pinned();
  Pinned(const Pinned &) = delete;
  Pinned &operator=(const Pinned &) = delete;
};

/// Returns the bytes of device memory that an allocation uses.
constexpr std::size_t footprint(std::size_t bytes) { return (bytes + 511) / 512 * 512; }

struct Context {
  Context(CUdevice device, bool primary, std::uint64_t firstAddress)
      : device(device), primary(primary), memory(firstAddress) {}
  CUcontext handle = nullptr;
  CUdevice device;
  bool primary;
  ptx::Memory memory;
  std::map<CUdeviceptr, std::size_t> allocations; ///< requested bytes
  CUresult sticky = CUDA_SUCCESS;
  std::shared_ptr<Stream> legacy;
  std::vector<std::shared_ptr<Stream>> streams; ///< the legacy stream too, and destroyed streams with queued work
};

} // namespace kiln::fake
