// SPDX-License-Identifier: Apache-2.0
//
// The threads and the memory of a benchmark, as in a program that embeds a model: one executor for all libraries and
// probes, arenas, inputs.
#pragma once

#include "kiln/runtime.h"

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kiln::bench {

/// Threads for calls: only the caller's for 1, else the bundled pool.
class Threads {
public:
  explicit Threads(int count);
  ~Threads();
  Threads(const Threads &) = delete;
  Threads &operator=(const Threads &) = delete;

  int count() const { return number; }
  /// Returns null for one thread.
  const kiln_executor_t *executor() const;
  /// Runs task(i) for i in [0, count()), on all threads.
  void onAll(const std::function<void(int)> &task) const;

private:
  int number;
  kiln_pool_t *pool = nullptr;
};

/// Memory with the alignment of an arena; at least one cache line.
class Memory {
public:
  explicit Memory(std::size_t bytes);
  std::byte *data() const { return bytes.get(); }
  std::size_t size() const { return count; }

private:
  struct Free {
    void operator()(std::byte *memory) const { std::free(memory); }
  };
  std::size_t count;
  std::unique_ptr<std::byte, Free> bytes;
};

/// Values of the tests' counter-based generator: in [-1, 1), in [0, vocabulary), and the weight of that name.
std::vector<float> makeInput(const std::string &name, std::size_t count);
std::vector<std::int32_t> makeTokens(const std::string &name, std::size_t count, int vocabulary);
std::vector<float> makeWeight(const std::string &name, const std::vector<std::int64_t> &shape);

} // namespace kiln::bench
