// SPDX-License-Identifier: Apache-2.0
//
// The runtime library's thread pool, as a program that embeds a model would pass it. It starts threads, so it must only
// be used in child processes.
#pragma once

#include "kiln/runtime.h"
#include "runtime/src/core/model.h"

namespace kiln {

class Executor {
public:
  /// One thread uses no pool. If threads cannot be started there are fewer.
  explicit Executor(unsigned threads) {
    if (threads > 1 && kiln_pool_create(threads, &pool, nullptr) != KILN_OK)
      pool = nullptr;
  }
  ~Executor() { kiln_pool_destroy(pool); }
  Executor(const Executor &) = delete;
  Executor &operator=(const Executor &) = delete;

  /// Returns null for one thread.
  const kiln_executor_t *get() const { return pool ? kiln_pool_executor(pool) : nullptr; }
  unsigned workers() const { return pool ? get()->workers : 1; }

private:
  kiln_pool_t *pool = nullptr;
};

} // namespace kiln
