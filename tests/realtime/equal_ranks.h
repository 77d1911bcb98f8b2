// SPDX-License-Identifier: Apache-2.0
//
// Simulates communication with ranks that all have the same data as this one, and with a previous pipeline stage that
// sends zeros, so that one process can call a library for several.
#pragma once

#include "kiln/runtime.h"

namespace kiln::realtime {

/// The communicator of the last of `size` processes, or null if there is only one. It neither waits nor allocates.
class EqualRanks {
public:
  explicit EqualRanks(uint32_t size) : communicator{this, size > 0 ? size - 1 : 0, size, begin, finish, nullptr} {}
  EqualRanks(const EqualRanks &) = delete;
  EqualRanks &operator=(const EqualRanks &) = delete;

  const kiln_communicator_t *get() const { return communicator.size > 1 ? &communicator : nullptr; }

private:
  static kiln_status_t begin(void *self, const kiln_collective_t *what, kiln_error_t *error);
  static kiln_status_t finish(void *self, kiln_error_t *error);

  kiln_communicator_t communicator;
};

} // namespace kiln::realtime
