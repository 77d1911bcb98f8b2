// SPDX-License-Identifier: Apache-2.0
//
// Runs the entries of a generated library as a careful program would, under all adverse conditions that the contract
// allows: a poisoned arena of exactly the required size between guard pages; poisoned outputs; tensors aligned to their
// elements only; one, two and three workers, whose results must be bit-identical. For a model on a device, the arena is
// device memory of exactly that size, which the test does not initialise; there is one worker.
#pragma once

#include "buffers.h"
#include "weights.h"

#include "kiln/runtime.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

namespace kiln::testing {

/// The functions that every generated library has, and its weights.
template <class Handle> struct Library {
  const char *name;
  kiln_status_t (*create)(const kiln_allocator_t *, Handle **, kiln_error_t *);
  kiln_status_t (*bind)(Handle *, const void *, std::size_t, kiln_error_t *);
  void (*destroy)(Handle *);
  kiln_status_t (*createPool)(std::uint32_t, kiln_pool_t **, kiln_error_t *);
  const kiln_executor_t *(*poolExecutor)(const kiln_pool_t *);
  void (*destroyPool)(kiln_pool_t *);
  kiln_device_t (*device)(const Handle *);
  kiln_status_t (*allocate)(const Handle *, std::size_t, void **, kiln_error_t *);
  void (*release)(const Handle *, void *);
  kiln_status_t (*copy)(const Handle *, void *, const void *, std::size_t, kiln_error_t *);
  kiln_status_t (*zero)(const Handle *, void *, std::size_t, kiln_error_t *);
  std::vector<WeightShape> weights;
};

#define KILN_TEST_WEIGHT(name, type, copies, ...) {name, copies, {__VA_ARGS__}, #type},
#define KILN_TEST_JOIN_(a, b) a##b
#define KILN_TEST_JOIN(a, b) KILN_TEST_JOIN_(a, b)
/// Returns the Library of a model: KILN_TEST_LIBRARY(gpt2, GPT2_WEIGHTS).
#define KILN_TEST_LIBRARY(model, WEIGHTS)                                                                              \
  ::kiln::testing::Library<KILN_TEST_JOIN(model, _t)> {                                                                \
    KILN_TEST_TEXT(model), KILN_TEST_JOIN(model, _create), KILN_TEST_JOIN(model, _bind_weights_from_memory),           \
        KILN_TEST_JOIN(model, _destroy), KILN_TEST_JOIN(model, _pool_create), KILN_TEST_JOIN(model, _pool_executor),   \
        KILN_TEST_JOIN(model, _pool_destroy), KILN_TEST_JOIN(model, _device), KILN_TEST_JOIN(model, _allocate_memory), \
        KILN_TEST_JOIN(model, _release_memory), KILN_TEST_JOIN(model, _copy_memory),                                   \
        KILN_TEST_JOIN(model, _zero_memory), {                                                                         \
      WEIGHTS(KILN_TEST_WEIGHT)                                                                                        \
    }                                                                                                                  \
  }
#define KILN_TEST_TEXT_(x) #x
#define KILN_TEST_TEXT(x) KILN_TEST_TEXT_(x)

namespace detail {
template <class T> const T *place(const Input<T> &input, Guard guard) { return input.place(guard); }
template <class T> T *place(Output<T> &output, Guard guard) { return output.place(guard); }
inline std::int64_t place(std::int64_t extent, Guard) { return extent; }

template <class T> void prepare(const Input<T> &, Guard) {}
template <class T> void prepare(Output<T> &output, Guard guard) { output.poison(guard); }
inline void prepare(std::int64_t, Guard) {}

template <class T> void verify(const Input<T> &input, Guard guard) {
  EXPECT_TRUE(input.isIntact(guard)) << "an input was written to";
}
template <class T> void verify(Output<T> &output, Guard guard) {
  EXPECT_TRUE(output.isIntact(guard)) << "something was written outside of an output";
  EXPECT_EQ(std::memcmp(output.place(guard), output.values().data(), output.values().size_bytes()), 0)
      << "the run gave other bits than the first one";
}
inline void verify(std::int64_t, Guard) {}
} // namespace detail

/// An arena where the model's memory is. On the host it is poisoned and between guard pages.
template <class Handle> class Arena {
public:
  Arena(const Library<Handle> &library, const Handle *handle, std::size_t bytes, Guard guard)
      : library(library), handle(handle), bytes(bytes) {
    if (library.device(handle) == KILN_CPU)
      host.emplace(bytes, guard);
    else
      EXPECT_EQ(library.allocate(handle, bytes, &onDevice, nullptr), KILN_OK);
  }
  ~Arena() { library.release(handle, onDevice); }
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  void *data() const { return host ? host->data() : onDevice; }
  std::size_t size() const { return bytes; }
  bool isIntact() const { return !host || host->isIntact(); }
  void zero(std::size_t first) { EXPECT_EQ(library.zero(handle, data(), first, nullptr), KILN_OK); }
  void copyFrom(const Arena &other, std::size_t first) {
    EXPECT_EQ(library.copy(handle, data(), other.data(), first, nullptr), KILN_OK);
  }
  /// Poisons all except the first bytes; device memory is left unchanged.
  void poisonAfter(std::size_t first) {
    if (host)
      std::memset(host->data() + first, GuardedMemory::poison, bytes - first);
  }

private:
  const Library<Handle> &library;
  const Handle *handle;
  std::size_t bytes;
  std::optional<GuardedMemory> host;
  void *onDevice = nullptr;
};

/// A model whose weights are bound.
template <class Handle> class Session {
public:
  /// Weights are those in `given`, or those of the counter.
  explicit Session(Library<Handle> of) : Session(std::move(of), {}) {}
  Session(Library<Handle> of, std::vector<Weight> given) : library(std::move(of)) {
    check(library.create(nullptr, &handle, &error));
    WeightImage image = given.empty() ? WeightImage(library.weights) : WeightImage(given);
    check(library.bind(handle, image.data(), image.size(), &error));
    for (std::uint32_t threads : {2u, 3u})
      if (kiln_status_t status = library.createPool(threads, &pools[threads - 2], &error); status != KILN_THREAD_ERROR)
        check(status);
  }
  ~Session() {
    for (kiln_pool_t *pool : pools)
      library.destroyPool(pool);
    library.destroy(handle);
  }
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  Handle *get() const { return handle; }
  const Library<Handle> &functions() const { return library; }
  bool isOnHost() const { return library.device(handle) == KILN_CPU; }
  /// Returns null for one worker.
  const kiln_executor_t *executor(std::uint32_t workers) const {
    return workers == 1 ? nullptr : pools[workers - 2] ? library.poolExecutor(pools[workers - 2]) : &turns[workers - 2];
  }

  /// Runs the entry with 1, 2 and 3 workers, with the guard page after the buffers and then before them, and compares
  /// all outputs. Arguments are extents, Inputs and Outputs, in the entry's order. If the environment variable
  /// KILN_TEST_WORKERS is set, only that number of workers is used.
  template <class... Parameters, class... Arguments>
  void run(kiln_status_t (*entry)(const Handle *, const kiln_call_t *, Parameters...), Arguments &&...arguments) {
    runWith({1, 2, 3}, entry, arguments...);
  }
  template <class... Parameters, class... Arguments>
  void runWith(const std::vector<std::uint32_t> &workers,
               kiln_status_t (*entry)(const Handle *, const kiln_call_t *, Parameters...), Arguments &&...arguments) {
    Guard guard = Guard::back;
    for (std::uint32_t count : numbersOf(workers)) {
      SCOPED_TRACE(std::to_string(count) + " workers");
      auto call = [&](kiln_call_t &with) { return entry(handle, &with, detail::place(arguments, guard)...); };
      (detail::prepare(arguments, guard), ...);
      Arena<Handle> arena(library, handle, arenaBytes(call, count), guard);
      kiln_call_t with{arena.data(), arena.size(), executor(count), &error};
      ASSERT_EQ(call(with), KILN_OK) << error.message;
      EXPECT_EQ(error.status, KILN_OK);
      EXPECT_STREQ(error.message, "");
      (detail::verify(arguments, guard), ...);
      EXPECT_TRUE(arena.isIntact()) << "something was written outside of the arena";
      guard = guard == Guard::back ? Guard::front : Guard::back;
    }
  }

private:
  std::vector<std::uint32_t> numbersOf(const std::vector<std::uint32_t> &workers) const {
    if (!isOnHost())
      return {1};
    const char *one = std::getenv("KILN_TEST_WORKERS");
    return one ? std::vector{static_cast<std::uint32_t>(std::clamp(std::atoi(one), 1, 3))} : workers;
  }
  template <std::uint32_t Workers>
  static void runInTurns(void *, std::uint32_t count, void (*task)(void *, std::uint32_t, std::uint32_t),
                         void *context) {
    for (std::uint32_t i = 0; i < count; ++i)
      task(context, i, i % Workers);
  }
  void check(kiln_status_t status) {
    if (status != KILN_OK) {
      std::fprintf(stderr, "%s: %s\n", library.name, error.message);
      std::abort();
    }
  }
  /// Returns the arena size that the entry requires, from the error message about a too small arena.
  template <class Call> std::size_t arenaBytes(Call &&call, std::uint32_t workers) {
    alignas(KILN_ARENA_ALIGNMENT) unsigned char nothing[KILN_ARENA_ALIGNMENT];
    kiln_call_t with{nothing, 0, executor(workers), &error};
    unsigned long long bytes = 0;
    EXPECT_EQ(call(with), KILN_ARENA_TOO_SMALL) << error.message;
    const char *at = std::strstr(error.message, "arena too small; ");
    EXPECT_TRUE(at && std::sscanf(at, "arena too small; expected %llu bytes", &bytes) == 1) << error.message;
    return bytes;
  }

  Library<Handle> library;
  Handle *handle = nullptr;
  kiln_pool_t *pools[2]{};
  /// For systems without threads: one thread runs as each worker in turn.
  kiln_executor_t turns[2] = {{nullptr, 2, runInTurns<2>}, {nullptr, 3, runInTurns<3>}};
  kiln_error_t error{};
};

/// An arena that persists between calls: states are zero at first, all else is poisoned before each call.
template <class Handle> class Conversation {
public:
  Conversation(const Session<Handle> &session, std::uint32_t workers, std::size_t stateBytes, std::size_t arenaBytes)
      : session(session), workers(session.isOnHost() ? workers : 1), stateBytes(stateBytes),
        arena(session.functions(), session.get(), arenaBytes, Guard::back) {
    arena.zero(stateBytes);
  }

  template <class... Parameters, class... Arguments>
  kiln_status_t call(kiln_status_t (*entry)(const Handle *, const kiln_call_t *, Parameters...),
                     Arguments &&...arguments) {
    (detail::prepare(arguments, Guard::back), ...);
    arena.poisonAfter(stateBytes);
    const kiln_call_t with{arena.data(), arena.size(), session.executor(workers), &error};
    kiln_status_t status = entry(session.get(), &with, detail::place(arguments, Guard::back)...);
    (detail::verify(arguments, Guard::back), ...);
    EXPECT_TRUE(arena.isIntact()) << "something was written outside of the arena";
    return status;
  }
  /// Makes a call that must succeed.
  template <class Entry, class... Arguments> void run(Entry entry, Arguments &&...arguments) {
    ASSERT_EQ(call(entry, arguments...), KILN_OK) << error.message;
  }

  /// Copies the states of the other conversation.
  void takeStates(const Conversation &other) { arena.copyFrom(other.arena, stateBytes); }
  /// Returns the bytes of the states, for a model on the host.
  std::vector<unsigned char> states() const {
    const auto *first = static_cast<const unsigned char *>(arena.data());
    return {first, first + stateBytes};
  }
  /// Overwrites the bytes of the states from `first` on, for a model on the host.
  void fillStates(std::size_t first, int byte) {
    std::memset(static_cast<char *>(arena.data()) + first, byte, stateBytes - first);
  }
  void *data() const { return arena.data(); }
  kiln_error_t error{};

private:
  const Session<Handle> &session;
  std::uint32_t workers;
  std::size_t stateBytes;
  Arena<Handle> arena;
};

} // namespace kiln::testing
