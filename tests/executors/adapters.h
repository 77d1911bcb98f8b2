// SPDX-License-Identifier: Apache-2.0
// The executors of runtime/include/kiln/executors with a common interface for tests.
#pragma once

#include "kiln/runtime.h"

#include <array>
#include <memory>
#include <ostream>

namespace kiln_test {

struct Adapter {
  const char *name;
  /// Makes an executor with everything that it needs. Returns null if this build lacks its library.
  std::shared_ptr<const kiln_executor_t> (*make)(uint32_t workers);
};
inline std::ostream &operator<<(std::ostream &out, const Adapter &adapter) { return out << adapter.name; }

extern const std::array<Adapter, 4> adapters;

} // namespace kiln_test
