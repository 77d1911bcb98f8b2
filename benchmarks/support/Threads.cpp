// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/support/Threads.h"

#include "runtime/src/core/model.h" // for the pool; a generated library has it under its own prefix
#include "tests/models/counter.h"

#include <cstdio>

namespace kiln::bench {

Threads::Threads(int count) : number(count) {
  kiln_error_t error;
  if (count > 1 && kiln_pool_create(static_cast<std::uint32_t>(count), &pool, &error) != KILN_OK) {
    std::fprintf(stderr, "error: %s\n", error.message);
    std::exit(1);
  }
}

Threads::~Threads() { kiln_pool_destroy(pool); }

const kiln_executor_t *Threads::executor() const { return pool ? kiln_pool_executor(pool) : nullptr; }

void Threads::onAll(const std::function<void(int)> &task) const {
  if (!pool)
    return task(0);
  auto run = [](void *context, std::uint32_t index, std::uint32_t) {
    (*static_cast<const std::function<void(int)> *>(context))(static_cast<int>(index));
  };
  const kiln_executor_t *threads = executor();
  threads->parallel_for(threads->self, static_cast<std::uint32_t>(number), run,
                        const_cast<void *>(static_cast<const void *>(&task)));
}

static std::size_t roundUp(std::size_t bytes) { return (bytes / KILN_ARENA_ALIGNMENT + 1) * KILN_ARENA_ALIGNMENT; }

Memory::Memory(std::size_t bytes)
    : count(roundUp(bytes)), bytes(static_cast<std::byte *>(std::aligned_alloc(KILN_ARENA_ALIGNMENT, count))) {
  if (!this->bytes) {
    std::fprintf(stderr, "error: no memory for %zu bytes\n", count);
    std::exit(1);
  }
}

std::vector<float> makeInput(const std::string &name, std::size_t count) {
  std::vector<float> values(count);
  std::uint64_t hash = testing::fnv1a64(name);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(testing::counter_unit(testing::counter_hash(hash, i)));
  return values;
}

std::vector<std::int32_t> makeTokens(const std::string &name, std::size_t count, int vocabulary) {
  std::vector<std::int32_t> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = testing::counter_token(name, i, vocabulary);
  return values;
}

std::vector<float> makeWeight(const std::string &name, const std::vector<std::int64_t> &shape) {
  std::size_t count = 1;
  for (std::int64_t extent : shape)
    count *= static_cast<std::size_t>(extent);
  testing::CounterWeight value(name, shape);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = value(i);
  return values;
}

} // namespace kiln::bench
