// SPDX-License-Identifier: Apache-2.0
//
// The search space of a strategy, and schedule configurations in it: the default configuration, and which
// configurations are legal.
#pragma once

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

/// A schedule configuration: values of a strategy's parameters by name, printed in order of the name as "k_block=256
/// m=8 n=48".
using ScheduleConfig = std::map<std::string, int64_t>;

std::string toString(const ScheduleConfig &config);

/// A parameter that a schedule strategy declares.
struct TuningParameter {
  std::string key;
  std::vector<int64_t> values; // legal values, ascending
  int64_t defaultValue = 0;    // the analytic default, one of the values
};

/// A constraint between parameters of a schedule.
struct TuningRule {
  std::string text;                                  // completes "schedule: invalid combination; expected"
  std::function<bool(const ScheduleConfig &)> holds; // for a configuration that has every parameter of the space
};

/// The parameters of a schedule and the constraints between them, which the default values satisfy.
struct SearchSpace : std::vector<TuningParameter> {
  using std::vector<TuningParameter>::vector;
  std::vector<TuningRule> rules;
};

/// How a kernel can be scheduled: the strategy and its parameters.
struct Schedulable {
  std::string strategy; // name of the strategy, specific to the kernel's compiler: "contraction", "skinny_gemm",
                        // "attention"
  SearchSpace space;
  double operationShare = 1; // share of the kernel's operations that the strategy executes: below 1 if it saves some
};

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
