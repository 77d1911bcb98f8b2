// SPDX-License-Identifier: Apache-2.0
//
// Schedule configurations in the search space of a strategy: the default configuration, and which configurations are
// legal.
#pragma once

#include "targets/target.h"

namespace kiln {

/// Returns the analytic default configuration.
ScheduleConfig defaultConfigOf(const SearchSpace &space);

/// Whether a configuration with a value for every parameter obeys the rules that relate parameters.
bool obeysRules(const SearchSpace &space, const ScheduleConfig &config);

/// Returns `config` completed by the defaults; nullopt with `error` set if it has an unknown key or an illegal value,
/// or breaks a rule.
std::optional<ScheduleConfig> resolve(const SearchSpace &space, const ScheduleConfig *config, std::string &error);

/// Returns a parameter whose default is the legal value nearest to `wanted`, not above it if possible.
TuningParameter makeParameter(llvm::StringRef key, std::vector<int64_t> values, int64_t wanted);

} // namespace kiln
