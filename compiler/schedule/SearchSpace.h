// SPDX-License-Identifier: Apache-2.0
//
// Points of the search space that a schedule strategy declares: the analytic default, and which points are legal.
#pragma once

#include "targets/target.h"

namespace kiln {

/// The analytic default.
SchedulePoint presets(const SearchSpace &space);

/// Whether a point that has every parameter obeys the rules that join them.
bool obeysRules(const SearchSpace &space, const SchedulePoint &point);

/// `point` completed by the presets; nothing and `error` set if it has an unknown key or an illegal value, or breaks a
/// rule.
std::optional<SchedulePoint> resolve(const SearchSpace &space, const SchedulePoint *point, std::string &error);

/// The parameter whose preset is the legal value nearest to `wanted`, not above it if there is such a one.
TuningParameter makeParameter(llvm::StringRef key, std::vector<int64_t> values, int64_t wanted);

} // namespace kiln
