// SPDX-License-Identifier: Apache-2.0
//
// The parameters that a schedule strategy declares: the values that are legal, and the analytic default among them.
#pragma once

#include "targets/target.h"

namespace kiln {

struct TuningParameter {
  std::string key;
  std::vector<int64_t> values; // legal ones, ascending
  int64_t preset = 0;          // the analytic default, one of them
};

using SearchSpace = std::vector<TuningParameter>;

/// The analytic default.
SchedulePoint presets(const SearchSpace &space);

/// `point` completed by the presets; nothing and `error` set if it has an unknown key or an illegal value.
std::optional<SchedulePoint> resolve(const SearchSpace &space, const SchedulePoint *point, std::string &error);

/// The parameter whose preset is the legal value nearest to `wanted`, not above it if there is such a one.
TuningParameter makeParameter(llvm::StringRef key, std::vector<int64_t> values, int64_t wanted);

} // namespace kiln
