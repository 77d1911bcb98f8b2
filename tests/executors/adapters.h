// SPDX-License-Identifier: Apache-2.0
// The executors of runtime/include/kiln/executors, alike for tests.
#pragma once

#include "kiln/runtime.h"

#include <array>
#include <memory>
#include <ostream>

namespace kiln_test {

struct Adapter {
  const char *name;
  /// An executor and all that it needs; null: this build has not its library.
  std::shared_ptr<const kiln_executor_t> (*make)(uint32_t workers);
};
inline std::ostream &operator<<(std::ostream &out, const Adapter &adapter) { return out << adapter.name; }

extern const std::array<Adapter, 4> adapters;

} // namespace kiln_test
